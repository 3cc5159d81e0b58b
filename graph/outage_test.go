package graph_test

import (
	"testing"
	"time"

	"countersign/graph"
	"countersign/internal/auth"
	"countersign/internal/invoicing"
	"countersign/internal/testdb"
	"countersign/internal/testdb/pgproxy"
	"countersign/internal/txn"
)

// TestPoolExhausted: a request that gets no connection in time is told BUSY, and had no effect.
func TestPoolExhausted(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(d *testdb.DB, o *graph.Options) {
		pool := d.NewPool(t, 1)
		held, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(held.Release)
		small := txn.New(pool, txn.Settings{AcquireTimeout: 20 * time.Millisecond})
		o.Resolver = &graph.Resolver{DB: small, Invoicing: invoicing.New(small)}
	})
	wantCodes(t, a.do(t, a.demo.admin, askInvoice, vars{"id": a.demo.invoiceID}), "BUSY")
	wantCodes(t, a.do(t, a.demo.admin, `{ doctor { healthy } }`, nil), "BUSY")
	for _, key := range []any{nil, "key"} {
		r := a.do(t, a.demo.admin, makeOne, vars{"name": "Nobody", "key": key})
		wantCodes(t, r, "BUSY")
	}
	if n := a.count(t, "customers", "name = 'Nobody'"); n != 0 {
		t.Errorf("%d customers were made by requests that were told nothing was changed", n)
	}
}

// TestPoolExhaustedByTokens: where not even the token can be looked up, the answer is 503 and BUSY,
// never that the token is not valid: a client that believed that would throw it away.
func TestPoolExhaustedByTokens(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(d *testdb.DB, o *graph.Options) {
		pool := d.NewPool(t, 1)
		held, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(held.Release)
		o.Authenticate = auth.NewTokens(txn.New(pool, txn.Settings{AcquireTimeout: 20 * time.Millisecond})).Authenticate
	})
	r := a.do(t, a.demo.admin, `{ __typename }`, nil)
	if wantCodes(t, r, "BUSY"); r.status != 503 || r.header.Get("WWW-Authenticate") != "" {
		t.Errorf("answered %d with the headers %v, want 503", r.status, r.header)
	}
}

// TestDatabaseGone: while the database cannot be reached the answer is UNAVAILABLE, and the server
// finds it again by itself.
func TestDatabaseGone(t *testing.T) {
	t.Parallel()
	var proxy *pgproxy.Proxy
	a := newAPI(t, func(d *testdb.DB, o *graph.Options) {
		proxy = pgproxy.New(t, d.URL)
		db := txn.New(d.PoolAt(t, proxy.URL(), 4), txn.Settings{})
		o.Resolver = &graph.Resolver{DB: db, Invoicing: invoicing.New(db)}
	})
	a.must(t, a.demo.admin, askInvoice, vars{"id": a.demo.invoiceID})
	proxy.Refuse(true)
	proxy.CutAll()
	wantCodes(t, a.do(t, a.demo.admin, askInvoice, vars{"id": a.demo.invoiceID}), "UNAVAILABLE")
	wantCodes(t, a.do(t, a.demo.admin, makeOne, vars{"name": "Late", "key": "late"}), "UNAVAILABLE")
	proxy.Refuse(false)
	a.must(t, a.demo.admin, askInvoice, vars{"id": a.demo.invoiceID})
	if r := a.must(t, a.demo.admin, makeOne, vars{"name": "Late", "key": "late"}); r.at(t, "createCustomer.replayed") != false {
		t.Errorf("what was UNAVAILABLE had an effect: %s", r.body)
	}
}

// TestLostAnswer: where the answer to a commit is lost for good, the error carries the key that asks
// again, and asking tells what happened: the invoice is there once.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	var proxy *pgproxy.Proxy
	a := newAPI(t, func(d *testdb.DB, o *graph.Options) {
		proxy = pgproxy.New(t, d.URL)
		db := txn.New(d.PoolAt(t, proxy.URL(), 4), txn.Settings{})
		o.Resolver = &graph.Resolver{DB: db, Invoicing: invoicing.New(db)}
	})
	lost := proxy.CutAfter(pgproxy.Query("InsertCustomer").Times(pgproxy.Always))
	r := a.do(t, a.demo.admin, makeOne, vars{"name": "Twice"})
	wantCodes(t, r, "OUTCOME_UNKNOWN")
	lost.Disarm()
	again := a.must(t, a.demo.admin, makeOne, vars{"name": "Twice", "key": r.errors[0].Extensions["idempotencyKey"]})
	if again.at(t, "createCustomer.replayed") != true {
		t.Errorf("asked again, the server answers %s, want what it did before", again.body)
	}
	if n := a.count(t, "customers", "name = 'Twice'"); n != 1 {
		t.Errorf("there are %d customers, want 1", n)
	}
}
