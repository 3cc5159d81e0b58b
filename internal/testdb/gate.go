package testdb

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// patience is how long a test waits for what must happen; a test that runs into it fails.
const patience = 20 * time.Second

// tracer sees every query of a test's pools before it is sent.
type tracer struct {
	mu    sync.Mutex
	hooks map[string]func(ctx context.Context)
	fails func(ctx context.Context) bool
	sent  []Statement
}

// Statement is a query as a pool sent it.
type Statement struct {
	Name string // the sqlc name, or the text where there is none
	SQL  string
	Args []any
}

func newTracer() *tracer { return &tracer{hooks: map[string]func(context.Context){}} }

// TraceQueryStart runs in the goroutine of the query, which waits for it.
func (tr *tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	name := data.SQL
	if tail, ok := strings.CutPrefix(data.SQL, "-- name: "); ok {
		name, _, _ = strings.Cut(tail, " ")
	}
	tr.mu.Lock()
	tr.sent = append(tr.sent, Statement{name, data.SQL, data.Args})
	hook, fails := tr.hooks[name], tr.fails
	tr.mu.Unlock()
	if hook != nil {
		hook(ctx)
	}
	if fails != nil && fails(ctx) {
		timeUp, cancel := context.WithCancel(ctx)
		cancel()
		return timeUp
	}
	return ctx
}

// TraceAcquireStart runs before a connection is taken from a pool, as a query by the name "acquire".
func (tr *tracer) TraceAcquireStart(ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData) context.Context {
	tr.mu.Lock()
	hook := tr.hooks["acquire"]
	tr.mu.Unlock()
	if hook != nil {
		hook(ctx)
	}
	return ctx
}

// TraceAcquireEnd does nothing.
func (tr *tracer) TraceAcquireEnd(context.Context, *pgxpool.Pool, pgxpool.TraceAcquireEndData) {}

// TraceQueryEnd does nothing.
func (tr *tracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// Before runs hook each time the query with this sqlc name (or this text: "commit") is about to be
// sent by a pool of the database, in the goroutine that sends it; "acquire" is before a connection is
// taken from a pool. A nil hook ends that.
func (d *DB) Before(query string, hook func(ctx context.Context)) {
	d.tracer.mu.Lock()
	defer d.tracer.mu.Unlock()
	d.tracer.hooks[query] = hook
}

// Fail lets those queries of the database's pools fail, before they are sent, whose context fails
// says it of; nil ends that.
func (d *DB) Fail(fails func(ctx context.Context) bool) {
	d.tracer.mu.Lock()
	defer d.tracer.mu.Unlock()
	d.tracer.fails = fails
}

// Sent begins to listen: the function it returns tells which queries the database's pools have
// sent since, by their sqlc names (or their text).
func (d *DB) Sent() func() []string {
	statements := d.Statements()
	return func() (names []string) {
		for _, s := range statements() {
			names = append(names, s.Name)
		}
		return names
	}
}

// Statements is Sent with the queries as they were sent.
func (d *DB) Statements() func() []Statement {
	all := func() []Statement {
		d.tracer.mu.Lock()
		defer d.tracer.mu.Unlock()
		return slices.Clone(d.tracer.sent)
	}
	before := len(all())
	return func() []Statement { return all()[before:] }
}

// Gate holds every connection that is about to send a query until it is opened.
type Gate struct {
	arrived chan struct{}
	open    chan struct{}
	once    sync.Once
}

// Gate closes a gate before a query. It opens at the end of the test at the latest.
func (d *DB) Gate(t testing.TB, query string) *Gate {
	g := &Gate{arrived: make(chan struct{}, 1000), open: make(chan struct{})}
	d.Before(query, func(ctx context.Context) {
		g.arrived <- struct{}{}
		select {
		case <-g.open:
		case <-ctx.Done():
		}
	})
	t.Cleanup(g.Open)
	return g
}

// Await returns when n more connections stand at the gate.
func (g *Gate) Await(t testing.TB, n int) {
	t.Helper()
	deadline := time.After(patience)
	for i := range n {
		select {
		case <-g.arrived:
		case <-deadline:
			t.Fatalf("only %d of %d connections came to the gate", i, n)
		}
	}
}

// Open lets everybody through, for good.
func (g *Gate) Open() { g.once.Do(func() { close(g.open) }) }

// AwaitLockWaits returns when n connections of the database wait for a lock.
func (d *DB) AwaitLockWaits(t testing.TB, n int) {
	t.Helper()
	conn := d.Owner(t)
	Eventually(t, func() bool {
		var waiting int
		err := conn.QueryRow(context.Background(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting)
		return err == nil && waiting >= n
	})
}

// Eventually returns when condition holds; the test fails if it does not come to hold.
func Eventually(t testing.TB, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("what the test waited for did not happen")
		}
	}
}
