package txn_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"countersign/internal/database"
	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// The backend is terminated before each statement of a write in turn, BEGIN and COMMIT included:
// the write runs again as a whole, and takes effect once.
func TestABackendTerminatedBeforeAnyStatement(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	db := h.db(t, txn.Settings{})
	series := h.series(t, "A")
	statements := []string{"begin", "LockSeriesCounter", "MoveSeriesCounter", "InsertCustomer", "commit"}
	for _, statement := range statements {
		c := h.create(t, "Bakery")
		c.first = threeStatements(h, series)
		sent := 0
		h.Before(statement, func(context.Context) {
			if sent++; sent == 1 {
				h.kill(t)
			}
		})
		a := c.run(t.Context(), db, inTransaction)
		h.Before(statement, nil)
		c.mustBeOwn(t, h, a, int(c.attempts.Load()))
		if sent != 2 {
			t.Errorf("%s was sent %d times, want 2", statement, sent)
		}
	}
	h.settle(t)
	h.mustHave(t, len(statements))
}

// The same before each attempt's statement: five times is enough, and nothing is applied.
func TestABackendTerminatedEveryTimeIsBusy(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	db := h.db(t, txn.Settings{})
	c := h.create(t, "Bakery")
	c.first = threeStatements(h, h.series(t, "A"))
	h.Before("MoveSeriesCounter", func(context.Context) { h.kill(t) })
	c.run(t.Context(), db, inTransaction).mustFail(t, domain.CodeBusy)
	c.mustHaveTried(t, 5)
	h.settle(t)
	h.mustHave(t, 0)
}

// A restart or a fail-over ends the idle connections of a pool all at once. The next request, of
// any shape, must not fail because each of its attempts takes another dead one. The pool's own
// look at connections that were idle for a second is off here: a busy server's never are.
func TestIdleConnectionsTerminatedAreNobodysFailure(t *testing.T) {
	t.Parallel()
	const idle = 12
	h := newHouse(t)
	pool, err := database.Open(t.Context(), h.URL, database.Options{MaxConns: idle, Tune: func(c *pgxpool.Config) {
		c.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
	}})
	check(t, err)
	t.Cleanup(pool.Close)
	db := txn.New(pool, txn.Settings{})
	requests := map[string]func() error{
		"a write":       func() error { return h.create(t, "Bakery").run(t.Context(), db, inTransaction).err },
		"one statement": func() error { return h.create(t, "Bakery").run(t.Context(), db, oneStatement).err },
		"one statement under a client's key": func() error {
			return h.createUnder(t, "key", "Bakery").run(t.Context(), db, oneStatement).err
		},
	}
	for name, read := range reads {
		requests[name] = func() error {
			_, err := read(t.Context(), db, h.list)
			return err
		}
	}
	for name, request := range requests {
		fill(t, pool, idle)
		h.kill(t)
		if err := request(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// threeStatements is what a creation of three statements does before its insertion.
func threeStatements(h *house, series domain.SeriesID) func(context.Context, txn.Tx, int) error {
	return func(ctx context.Context, tx txn.Tx, _ int) error {
		if _, err := tx.LockSeriesCounter(ctx, sqlc.LockSeriesCounterParams{TenantID: h.tenant, SeriesID: series}); err != nil {
			return err
		}
		day := domain.NewDate(2100, 1, 2)
		_, err := tx.MoveSeriesCounter(ctx, sqlc.MoveSeriesCounterParams{
			TenantID: h.tenant, SeriesID: series, PeriodStart: domain.UnusedPeriod, IssueDate: day, IssueDateEnds: day.Time, NumberPrefix: "A", NumberWidth: 1,
		})
		return err
	}
}

// fill opens n connections of a pool, and leaves them idle.
func fill(t *testing.T, pool *pgxpool.Pool, n int) {
	t.Helper()
	conns := make([]*pgxpool.Conn, n)
	for i := range conns {
		conn, err := pool.Acquire(t.Context())
		check(t, err)
		conns[i] = conn
	}
	for _, conn := range conns {
		conn.Release()
	}
}
