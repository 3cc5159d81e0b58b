package pgproxy

import (
	"fmt"
	"math"
	"strings"
)

// Always, given to [Point.Times], keeps a rule armed until it is disarmed.
const Always = math.MaxInt

type side int

const (
	frontend side = iota // from the client
	backend              // from the server
)

// A Point names a moment in a conversation: a message of the client or of the
// server that the proxy has read and not yet passed on.
type Point struct {
	name  string
	side  side
	nth   int                   // the nth message of that side, or
	match func(sql string) bool // the client has this statement executed
	times int
}

// Query is the moment the client has the sqlc query of that name executed, known
// by the comment "-- name: AllocateInvoices :many" that sqlc leaves in the SQL.
// Preparing the query is not executing it; executing it again from a statement
// cache is.
func Query(name string) Point {
	mark := "-- name: " + name + " :"
	p := Statement(func(sql string) bool { return strings.Contains(sql, mark) })
	p.name = "query " + name
	return p
}

// Commit is the moment the client sends COMMIT, or its synonym END.
func Commit() Point {
	p := Statement(func(sql string) bool {
		word := firstWord(sql)
		return strings.EqualFold(word, "commit") || strings.EqualFold(word, "end")
	})
	p.name = "commit"
	return p
}

// Statement is the moment the client has a statement executed whose text
// satisfies match. In the extended protocol that moment is Bind and not Execute,
// because a SELECT takes its snapshot at Bind: one held here sees, once released,
// what was committed meanwhile.
func Statement(match func(sql string) bool) Point {
	return Point{name: "statement", side: frontend, match: match, times: 1}
}

// FrontendMessage is the nth message a connection's client sends after the rule
// was armed, from 1, counted for each connection on its own. A connection opened
// later therefore counts from its startup packet; requests for encryption, which
// the proxy answers itself, do not count.
func FrontendMessage(n int) Point {
	return Point{name: fmt.Sprintf("frontend message %d", n), side: frontend, nth: n, times: 1}
}

// BackendMessage is the nth message a connection's client would receive after
// the rule was armed, counted like [FrontendMessage].
func BackendMessage(n int) Point {
	return Point{name: fmt.Sprintf("backend message %d", n), side: backend, nth: n, times: 1}
}

// Times lets a rule fire n times instead of once, or [Always].
func (p Point) Times(n int) Point {
	p.times = n
	return p
}

// String describes the point for test failures.
func (p Point) String() string { return p.name }

// firstWord skips blanks and line comments, such as sqlc's own.
func firstWord(sql string) string {
	for {
		sql = strings.TrimSpace(sql)
		if !strings.HasPrefix(sql, "--") {
			break
		}
		_, sql, _ = strings.Cut(sql, "\n")
	}
	if i := strings.IndexAny(sql, " \t\r\n;"); i >= 0 {
		sql = sql[:i]
	}
	return sql
}
