package txn_test

import (
	"context"
	"sync"
	"testing"

	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// migrate changes the types of columns that prepared statements return, as a migration may. (A
// column that is only added changes no statement of ours: each names its columns.)
const migrate = `ALTER TABLE customers ALTER COLUMN time_zone TYPE varchar(64);
	ALTER TABLE invoice_series ALTER COLUMN time_zone TYPE varchar(64);
	ALTER TABLE series_counters ALTER COLUMN number_prefix TYPE varchar(64)`

// A migration under a running server: the statements that its connections have prepared no longer
// fit, the database says 0A000 to each. One retry, on a connection that has prepared nothing, and
// no user hears of it, however many stale statements the write has.
func TestAWriteSurvivesAMigration(t *testing.T) {
	t.Parallel()
	for _, f := range forms {
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			db := h.db(t, txn.Settings{})
			series := h.series(t, "A")
			creation := func() *creation {
				c := h.create(t, "Bakery")
				if f == inTransaction {
					c.first = threeStatements(h, series)
				}
				return c
			}
			before, after := creation(), creation()
			before.mustBeOwn(t, h, before.run(t.Context(), db, f), 1)
			h.Exec(t, migrate)
			after.mustBeOwn(t, h, after.run(t.Context(), db, f), 2)
			if len(after.codes) != 1 || after.codes[0] != "0A000" {
				t.Errorf("met %v, want one stale statement", after.codes)
			}
		})
	}
}

// The same for reads, with every connection of the pool in use when the migration comes.
func TestReadsSurviveAMigration(t *testing.T) {
	t.Parallel()
	for name, read := range reads {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const readers = 8
			h := newHouse(t)
			db := h.dbAt(t, h.URL, readers, txn.Settings{})
			series := h.series(t, "A")
			// All at once, so that each has a connection of its own; the second statement of each
			// is stale as well.
			all := func() (runs [readers]int) {
				var together, done sync.WaitGroup
				together.Add(readers)
				for i := range readers {
					done.Go(func() {
						_, err := read(t.Context(), db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Customer, error) {
							if runs[i]++; runs[i] == 1 {
								together.Done()
								together.Wait()
							}
							rows, err := h.list(ctx, q)
							if err != nil {
								return nil, err
							}
							_, err = q.GetSeries(ctx, sqlc.GetSeriesParams{TenantID: h.tenant, Ids: []domain.SeriesID{series}})
							return rows, err
						})
						if err != nil {
							t.Error(err)
						}
					})
				}
				done.Wait()
				return runs
			}
			all()
			h.Exec(t, migrate)
			for i, n := range all() {
				if n != 2 {
					t.Errorf("reader %d ran %d times, want 2", i, n)
				}
			}
		})
	}
}

// What the server does not support at all stays an internal error, after the one retry that a
// stale statement gets.
func TestAnUnsupportedReadIsADefect(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	db := h.db(t, txn.Settings{})
	h.customer(t)
	h.Exec(t, `ALTER TABLE customers RENAME TO unreadable;
		CREATE FUNCTION unsupported() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE SQLSTATE '0A000'; END $$;
		ALTER TABLE unreadable RENAME name TO called;
		CREATE VIEW customers AS SELECT *, unsupported() AS name FROM unreadable;
		GRANT SELECT ON customers TO countersign_runtime`)
	for name, read := range reads {
		runs := 0
		_, err := read(t.Context(), db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Customer, error) {
			runs++
			return h.list(ctx, q)
		})
		if code(err) != domain.CodeInternal || runs != 2 {
			t.Errorf("%s: got %v after %d runs, want INTERNAL after 2", name, err, runs)
		}
	}
}
