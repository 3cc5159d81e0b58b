// Package pgproxy stands between a client and PostgreSQL and makes the network
// fail at a chosen message of their conversation.
//
// A test arms a rule: at this [Point], do that. The point names a moment, such
// as "the client sends COMMIT" or "the third message from now"; the rule says
// whether the connection is cut there or held until the test lets it go, and on
// which side of the server's work:
//
//	p := pgproxy.New(t, upstream)
//	pool, err := pgxpool.New(ctx, p.URL())
//	...
//	lost := p.CutAfter(pgproxy.Commit()) // committed, but the client never hears of it
//
// The client may be a pool in this process or a server binary in another one:
// all it is given is the URL.
//
// Rules are tried in the order they were armed. A message sets off at most one,
// and each is spent after one use unless its point says otherwise
// ([Point.Times]). Connections are handled independently; nothing is reordered
// within one, and messages before the chosen one always reach their receiver.
//
// The proxy reads only what it needs (framing, statement names, the end of an
// answer) and passes the bytes through unchanged, so authentication works as
// usual. It speaks no TLS: it declines it to clients and does not ask the server
// for it. Two things it does not recognise: the SQL commands PREPARE and EXECUTE,
// and a client that asks for its answer with Flush instead of Sync, for which
// CutAfter and HoldAnswer wait until the Sync comes.
package pgproxy
