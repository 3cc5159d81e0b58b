package pgproxy_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"countersign/internal/testdb/pgproxy"
)

var execModes = []pgx.QueryExecMode{
	pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
	pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
}

// The second execution of a cached statement sends only its name.
func TestQueryIsRecognised(t *testing.T) {
	t.Parallel()
	for _, mode := range execModes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			p := pgproxy.New(t, server)
			conn := connect(t, p.URL())
			exec := func(name string) error {
				sql := "-- name: " + name + " :one\nSELECT $1::int"
				_, err := conn.Exec(deadline(t), sql, mode, 1)
				return err
			}
			check(t, exec("GetThing"), "first execution")

			fault := p.CutBefore(pgproxy.Query("GetThing"))
			check(t, exec("GetThings"), "a query whose name begins the same")
			mustCount(t, fault, 0)
			if exec("GetThing") == nil {
				t.Fatal("the second execution was not recognised")
			}
			mustCount(t, fault, 1)
		})
	}
}

func TestPreparingIsNotExecuting(t *testing.T) {
	t.Parallel()
	p := pgproxy.New(t, server)
	conn := connect(t, p.URL())
	fault := p.CutBefore(pgproxy.Query("InsertRow"))

	_, err := conn.Prepare(deadline(t), "by_name", insertRow)
	check(t, err, "prepare")
	check(t, conn.Deallocate(deadline(t), "by_name"), "deallocate")
	_, err = conn.Prepare(deadline(t), "by_name", "SELECT $1::int")
	check(t, err, "prepare another under that name")
	_, err = conn.Exec(deadline(t), "by_name", 1)
	check(t, err, "execute the other")
	mustCount(t, fault, 0)

	_, err = conn.Prepare(deadline(t), "again", insertRow)
	check(t, err, "prepare")
	if _, err = conn.Exec(deadline(t), "again", newID()); err == nil {
		t.Fatal("not recognised under its name")
	}
	mustCount(t, fault, 1)
}

// A query that is held has not taken its snapshot yet.
func TestHeldQuerySeesWhatWasCommittedMeanwhile(t *testing.T) {
	t.Parallel()
	const countRow = "-- name: CountRow :one\nSELECT count(*) FROM rows WHERE id = $1"
	for _, mode := range execModes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			p := pgproxy.New(t, server)
			conn, id := connect(t, p.URL()), newID()
			hold := p.Hold(pgproxy.Query("CountRow"))
			var n int
			done := start(func() error { return conn.QueryRow(deadline(t), countRow, mode, id).Scan(&n) })

			wait(t, hold)
			check(t, insert(deadline(t), connect(t, server), id), "insert")
			hold.Release()
			check(t, <-done, "count")
			if n != 1 {
				t.Fatalf("counted %d rows, want 1", n)
			}
		})
	}
}

// A point in the middle of a batch finds the one answer of the whole batch.
func TestBatch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		arm  func(*pgproxy.Proxy, pgproxy.Point) *pgproxy.Fault
		kept bool
	}{
		"before": {(*pgproxy.Proxy).CutBefore, false},
		"after":  {(*pgproxy.Proxy).CutAfter, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := pgproxy.New(t, server)
			conn, id := connect(t, p.URL()), newID()
			fault := c.arm(p, pgproxy.Query("InsertRow"))
			b := &pgx.Batch{}
			b.Queue("SELECT 1")
			b.Queue(insertRow, id)
			b.Queue("SELECT 2")

			if conn.SendBatch(deadline(t), b).Close() == nil {
				t.Fatal("the client was told of success")
			}
			wait(t, fault)
			if got := settled(t, id); got != c.kept {
				t.Fatalf("row is there: %v, want %v", got, c.kept)
			}
		})
	}
}

// Rules with several uses, in the order armed; and a hold as a barrier.
func TestTimesAndOrder(t *testing.T) {
	t.Parallel()
	p := pgproxy.New(t, server)
	twice := p.CutBefore(pgproxy.Commit().Times(2))
	once := p.CutAfter(pgproxy.Commit())
	always := p.CutBefore(pgproxy.Commit().Times(pgproxy.Always))
	var kept []bool
	for range 6 {
		id := newID()
		if insert(deadline(t), connect(t, p.URL()), id) == nil {
			t.Fatal("the client was told of success")
		}
		kept = append(kept, settled(t, id))
	}
	for i, got := range kept {
		if got != (i == 2) {
			t.Fatalf("rows kept: %v, want only the third", kept)
		}
	}
	mustCount(t, twice, 2)
	mustCount(t, once, 1)
	mustCount(t, always, 3)
	always.Disarm()
	check(t, insert(deadline(t), connect(t, p.URL()), newID()), "after disarming")
}

func TestBarrier(t *testing.T) {
	t.Parallel()
	const n = 4
	p := pgproxy.New(t, server)
	config, err := pgxpool.ParseConfig(p.URL())
	check(t, err, "URL")
	config.MaxConns = n
	pool, err := pgxpool.NewWithConfig(deadline(t), config)
	check(t, err, "pool")
	t.Cleanup(pool.Close)

	hold := p.Hold(pgproxy.Query("InsertRow").Times(n))
	results := make(chan error, n)
	ids := make([]int, n)
	for i := range n {
		ids[i] = newID()
		go func() {
			results <- pgx.BeginFunc(deadline(t), pool, func(tx pgx.Tx) error {
				_, err := tx.Exec(context.Background(), insertRow, ids[i])
				return err
			})
		}()
	}
	check(t, hold.WaitN(deadline(t), n), "fill the barrier")
	for _, id := range ids {
		if visible(t, id) {
			t.Fatal("a row passed the barrier")
		}
	}
	hold.Release()
	for range n {
		check(t, <-results, "insert")
	}
	mustCount(t, hold.Fault, n)
}
