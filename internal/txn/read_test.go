package txn_test

import (
	"context"
	"testing"
	"time"

	"countersign/internal/domain"
	"countersign/internal/testdb"
	"countersign/internal/testdb/pgproxy"
	"countersign/internal/txn"
	"countersign/sqlc"
)

type reading = func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Customer, error)

// reads are both ways to read.
var reads = map[string]func(ctx context.Context, db *txn.DB, fn reading) ([]*sqlc.Customer, error){
	"Read": func(ctx context.Context, db *txn.DB, fn reading) ([]*sqlc.Customer, error) {
		return txn.Read(ctx, db, fn)
	},
	"Snapshot": func(ctx context.Context, db *txn.DB, fn reading) ([]*sqlc.Customer, error) {
		return txn.Snapshot(ctx, db, fn)
	},
}

// list reads all customers.
func (h *house) list(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Customer, error) {
	last := domain.CustomerID{}
	for i := range last {
		last[i] = 0xff
	}
	return q.ListCustomers(ctx, sqlc.ListCustomersParams{TenantID: h.tenant, BeforeID: last, RowLimit: 100})
}

// All that a snapshot reads is of one moment, while another request commits between its reads. A
// plain read, which makes no such promise, sees the difference: the commit was there to be seen.
func TestASnapshotIsOfOneMoment(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	db := h.db(t, txn.Settings{})
	for name, appeared := range map[string]int{"Read": 1, "Snapshot": 0} {
		var before []*sqlc.Customer
		after, err := reads[name](t.Context(), db, func(ctx context.Context, q *sqlc.Queries) (rows []*sqlc.Customer, err error) {
			if before, err = h.list(ctx, q); err != nil {
				return nil, err
			}
			c := h.create(t, "Bakery")
			c.mustBeOwn(t, h, c.run(ctx, db, inTransaction), 1)
			return h.list(ctx, q)
		})
		check(t, err)
		if got := len(after) - len(before); got != appeared {
			t.Errorf("%s: %d customers appeared between its reads, want %d", name, got, appeared)
		}
	}
}

// A snapshot cannot write, even where its closure tries to.
func TestASnapshotCannotWrite(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	db := h.db(t, txn.Settings{})
	c := h.create(t, "Bakery")
	_, err := txn.Snapshot(t.Context(), db, func(ctx context.Context, q *sqlc.Queries) (*sqlc.Customer, error) {
		return c.apply(ctx, txn.Tx{Queries: q, Now: domain.VersionAt(time.Now())})
	})
	if err == nil || len(c.codes) != 1 || c.codes[0] != "25006" {
		t.Errorf("got %v (%v), want the transaction to be read-only", err, c.codes)
	}
	h.settle(t)
	h.mustHave(t, 0)
}

// A snapshot may take longer than a statement of a request may; the connection it gives back is
// bound as before.
func TestASnapshotOutlivesTheStatementTimeout(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	db := h.dbAt(t, h.with(t, "statement_timeout=100ms"), 1, txn.Settings{})
	lock, err := h.Owner(t).Begin(t.Context())
	check(t, err)
	_, err = lock.Exec(t.Context(), "LOCK TABLE customers")
	check(t, err)

	done := make(chan error, 1)
	go func() {
		_, err := txn.Snapshot(t.Context(), db, h.list)
		done <- err
	}()
	looker := h.Owner(t)
	testdb.Eventually(t, func() (long bool) {
		err := looker.QueryRow(t.Context(), `SELECT EXISTS (SELECT `+ofThePools+`
			AND wait_event_type = 'Lock' AND clock_timestamp() - query_start > '300ms')`).Scan(&long)
		return err == nil && long
	})
	check(t, lock.Rollback(t.Context()))
	check(t, <-done)

	_, err = looker.Exec(t.Context(), "BEGIN; LOCK TABLE customers")
	check(t, err)
	if _, err := txn.Read(t.Context(), db, h.list); code(err) != domain.CodeBusy {
		t.Errorf("a plain read on the same connection: got %v, want BUSY", err)
	}
}

// A read meets losses and collisions like a write, and runs again, at most five times.
func TestAReadIsRetried(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for name, read := range reads {
		for losses, want := range map[int]domain.Code{1: "", 4: "", 5: domain.CodeBusy} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				proxy, db := h.behind(t, txn.Settings{})
				lost := proxy.CutBefore(pgproxy.Query("ListCustomers").Times(losses))
				runs := 0
				_, err := read(t.Context(), db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Customer, error) {
					runs++
					return h.list(ctx, q)
				})
				if code(err) != want || runs != min(losses+1, 5) || lost.Count() != losses {
					t.Errorf("got %v after %d runs and %d losses, want %q", err, runs, lost.Count(), want)
				}
			})
		}
	}
}

// A client that hangs up ends its read, which has no effect to finish.
func TestAReadEndsWithItsClient(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	proxy, db := h.behind(t, txn.Settings{})
	for name, read := range reads {
		ctx, hangUp := context.WithCancel(t.Context())
		hold := proxy.Hold(pgproxy.Query("ListCustomers"))
		done := make(chan error, 1)
		go func() {
			_, err := read(ctx, db, h.list)
			done <- err
		}()
		check(t, hold.Wait(t.Context()))
		hangUp()
		if err := <-done; err == nil {
			t.Errorf("%s: it read on", name)
		}
		hold.Cut()
	}
}
