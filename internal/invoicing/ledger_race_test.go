package invoicing_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/testdb"
	"countersign/internal/testdb/pgproxy"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// raced imports 4 and 5 while an allocation takes 4: the import has looked and has written its entries, and
// does not hold the counter yet.
func raced(t *testing.T, s *shop) error {
	t.Helper()
	s.takeMany(t, 3)
	gate := s.Gate(t, "LockSeriesCounter")
	done := make(chan error, 1)
	go func() {
		_, err := s.ImportNumbers(context.Background(), s.caller, s.importing(issued(4, 5)))
		done <- err
	}()
	gate.Await(t, 1)
	s.take(t, s.input())
	gate.Open()
	return <-done
}

// Proves the second look, under the lock: a number that was allocated since the first is taken. The import is
// refused, and nothing of it stays.
func TestAnAllocationBeforeTheLockRefusesTheImport(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	wantCode(t, raced(t, s), domain.CodeNumbersTaken)
	s.wantAudit(t, "1 to 4: 4 issued, 0 void, 0 imported, 0 voided elsewhere, 0 skipped")
	s.healthy(t)
}

// Proves the import's lock: an allocation that comes while the import holds the counter waits for it, and
// takes the number after the last imported one.
func TestAnAllocationWaitsForTheImport(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.takeMany(t, 3)
	gate := s.Gate(t, "commit")
	var wg sync.WaitGroup
	wg.Go(func() { s.imports(t, s.importing(issued(4, 5, 6))) })
	gate.Await(t, 1)
	var next *sqlc.Invoice
	wg.Go(func() { next = s.take(t, s.input()) })
	s.AwaitLockWaits(t, 1)
	gate.Open()
	wg.Wait()
	if *next.Sequence != 7 {
		t.Errorf("the allocation got %d", *next.Sequence)
	}
	s.wantAudit(t, "1 to 7: 4 issued, 0 void, 3 imported, 0 voided elsewhere, 0 skipped")
	s.healthy(t)
}

// Allocations and imports at once: whatever order they come in, each number has one outcome.
func TestImportsAmongAllocations(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.take(t, s.input())
	together(24, func(i int) {
		if i%3 > 0 {
			s.take(t, s.input())
			return
		}
		for range 50 {
			next := testdb.Scan[int64](t, s.DB, `SELECT next_number FROM series_counters WHERE series_id = $1`, s.series)
			_, err := s.ImportNumbers(context.Background(), s.caller, s.importing(issued(next, next+1)))
			if err == nil {
				return
			}
			if code := codeOf(err); code != domain.CodeNumbersTaken && code != domain.CodeNumbersUnexplained && code != domain.CodeBusy {
				t.Errorf("an import: %v", err)
				return
			}
		}
	})
	if a := s.audit(t); !a.Clean() || a.Issued != 17 || a.LastNumber != a.Issued+a.Imported {
		t.Errorf("the audit says %s", summary(a))
	}
	s.healthy(t)
}

// twoImports runs two imports of overlapping numbers at once: both have looked before either writes.
func twoImports(t *testing.T, s *shop, key *string) (errs [2]error, outs [2]txn.Outcome[*invoicing.SeriesChange]) {
	t.Helper()
	gate := s.Gate(t, "InsertSeriesEntries")
	var wg sync.WaitGroup
	for i := range 2 {
		in := s.importing(&[]domain.ImportedNumber{skipped(1, 6, "torn forms")})
		if in.IdempotencyKey = key; key == nil && i == 1 {
			in = s.importing(issued(1, 2, 3))
		}
		wg.Go(func() { outs[i], errs[i] = s.ImportNumbers(context.Background(), s.caller, in) })
	}
	gate.Await(t, 2)
	gate.Open()
	wg.Wait()
	return errs, outs
}

func wantOneImport(t *testing.T, s *shop, errs [2]error) {
	t.Helper()
	if codes := [2]domain.Code{codeOf(errs[0]), codeOf(errs[1])}; codes != [2]domain.Code{"", domain.CodeNumbersTaken} && codes != [2]domain.Code{domain.CodeNumbersTaken, ""} {
		t.Errorf("the imports answer %v", codes)
	}
	if a := s.audit(t); !a.Clean() {
		t.Errorf("the audit says %s", summary(a))
	}
	s.healthy(t)
}

// Of two imports at once that claim the same numbers one is refused.
func TestTwoImportsAtOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	errs, _ := twoImports(t, s, nil)
	wantOneImport(t, s, errs)
}

// Proves that the look under the lock is enough: without the indexes of the entries one of two imports is
// refused all the same.
func TestTheLockAloneIsEnoughForImports(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.Exec(t, `ALTER TABLE series_entries DROP CONSTRAINT series_entries_pkey, DROP CONSTRAINT series_entries_last_key`)
	errs, _ := twoImports(t, s, nil)
	wantOneImport(t, s, errs)
}

// Proves the indexes behind the lock: code that forgets it cannot give a number two outcomes that share
// an end, nor a change a place that is taken.
func TestTheIndexesRefuseASecondOutcome(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.imports(t, s.importing(&[]domain.ImportedNumber{skipped(1, 6, "torn forms")}))
	for constraint, sql := range map[string]string{
		"series_entries_pkey":     `INSERT INTO series_entries SELECT tenant_id, series_id, period_start, 1, 3, change_id, state, issue_date, reference, reason FROM series_entries`,
		"series_entries_last_key": `INSERT INTO series_entries SELECT tenant_id, series_id, period_start, 4, 6, change_id, state, issue_date, reference, reason FROM series_entries`,
		"series_changes_pkey": `INSERT INTO series_changes SELECT (json_populate_record(c, json_build_object('id', gen_random_uuid(), 'operation_id', gen_random_uuid()))).*
			FROM series_changes c`,
	} {
		var refused *pgconn.PgError
		if _, err := s.Pool.Exec(t.Context(), sql); !errors.As(err, &refused) || refused.ConstraintName != constraint {
			t.Errorf("%s: %v", constraint, err)
		}
	}
}

// Proves the guards of AdvanceSeriesCounter, which stand behind the lock: a counter that has moved on since it was read
// is left alone, and none goes back. Without the second a number is given again.
func TestACounterThatMovedOnIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.takeMany(t, 3)
	owner := s.Owner(t)
	arg := sqlc.AdvanceSeriesCounterParams{TenantID: s.caller.TenantID, SeriesID: s.series, ExpectedNumber: 4, NextNumber: 6}
	s.take(t, s.input()) // since the counter was read at 4, to enter 4 and 5
	if _, err := sqlc.New(owner).AdvanceSeriesCounter(t.Context(), arg); !errors.Is(err, pgx.ErrNoRows) {
		t.Errorf("the counter moved: %v", err)
	}
	arg.ExpectedNumber, arg.NextNumber = 5, 4
	if _, err := sqlc.New(owner).AdvanceSeriesCounter(t.Context(), arg); !errors.Is(err, pgx.ErrNoRows) {
		t.Errorf("the counter moved back: %v", err)
	}
	if _, err := testdb.Without(t, owner, " AND next_number < $1").AdvanceSeriesCounter(t.Context(), arg); err != nil {
		t.Fatal(err)
	}
	_, err := s.Allocate(t.Context(), s.caller, s.input())
	wantCode(t, err, domain.CodeSeriesInconsistent)
}

// Two requests with one key at once: one does the work, the other is told so.
func TestOneKeyTwiceAtOnceIsOneImport(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	errs, outs := twoImports(t, s, new("import 1"))
	if errs[0] != nil || errs[1] != nil || outs[0].Replayed == outs[1].Replayed || outs[0].Value.ID != outs[1].Value.ID {
		t.Errorf("answered %+v, %+v", outs, errs)
	}
	s.wantAudit(t, "1 to 6: 0 issued, 0 void, 0 imported, 0 voided elsewhere, 6 skipped")
	s.healthy(t)
}

// The connection is cut before and after each message of an import and of a resync, COMMIT among them: each is made once,
// and answered as its own.
func TestAnAnswerThatIsLostChangesASeriesOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	proxy := pgproxy.New(t, s.URL)
	through := *s
	through.db = txn.New(s.PoolAt(t, proxy.URL(), 4), txn.Settings{})
	through.Service = serviceOn(through.db)
	through.take(t, s.input()) // opens the day, and the connection
	changes, next := 0, int64(2)
	for _, kind := range []domain.SeriesChangeKind{domain.ChangeImport, domain.ChangeResync} {
		for name, cut := range map[string]func(pgproxy.Point) *pgproxy.Fault{"before": proxy.CutBefore, "after": proxy.CutAfter} {
			for k := 1; ; k++ {
				var out txn.Outcome[*invoicing.SeriesChange]
				var err error
				var fault *pgproxy.Fault
				if kind == domain.ChangeImport {
					fault = cut(pgproxy.FrontendMessage(k))
					out, err = through.ImportNumbers(t.Context(), s.caller, s.importing(issued(next)))
					next++
				} else {
					s.take(t, s.input())
					next++
					s.Exec(t, `UPDATE series_counters SET next_number = next_number - 1 WHERE series_id = $1`, s.series)
					fault = cut(pgproxy.FrontendMessage(k))
					out, err = through.ResyncSeries(t.Context(), s.caller, s.resyncing())
				}
				fault.Disarm()
				changes++
				if err != nil {
					t.Fatalf("%s, cut %s message %d: %v", kind, name, k, err)
				}
				if c := out.Value; out.Replayed || c.NextNumberBefore != next-1 || c.NextNumber != next || int(c.Position) != changes {
					t.Errorf("%s, cut %s message %d: %+v, replayed %v; want change %d to %d", kind, name, k, c.SeriesChange, out.Replayed, changes, next)
				}
				if fault.Count() == 0 {
					break
				}
			}
		}
	}
	if n := testdb.Scan[int](t, s.DB, "SELECT count(*) FROM series_changes"); n != changes {
		t.Errorf("%d changes were made, of %d asked for", n, changes)
	}
	s.healthy(t)
}

// A hundred thousand rows that each are an entry are one import; while they are written, numbers are given.
func TestAnImportOfManyRowsHoldsUpNoNumber(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.db = txn.New(s.Pool, txn.Settings{WriteTimeout: 2 * time.Minute}) // a test's machine may be slow
	s.Service = serviceOn(s.db)
	s.take(t, s.input())
	rows := make([]domain.ImportedNumber, domain.MaxImportRows)
	for i := range rows {
		reference := time.Unix(int64(i), 0).UTC().Format("old-150405.02")
		rows[i] = domain.ImportedNumber{Number: new(int64(i + 2)), Reference: &reference}
	}
	in := s.importing(&rows)
	written, locks, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	s.Before("LockSeriesCounter", func(context.Context) { close(written); <-locks })
	go func() {
		_, err := s.ImportNumbers(context.Background(), s.caller, in)
		done <- err
	}()
	<-written // and the counter is not locked yet
	if other := s.take(t, s.input()); *other.Sequence != 2 {
		t.Errorf("meanwhile number %d was given", *other.Sequence)
	}
	close(locks)
	wantCode(t, <-done, domain.CodeNumbersTaken)
	s.Before("LockSeriesCounter", nil)
	*in.Numbers = append(rows[1:], domain.ImportedNumber{Number: new(int64(domain.MaxImportRows + 2))})
	c := s.imports(t, in)
	if c.ImportedNumbers != domain.MaxImportRows || c.NextNumber != domain.MaxImportRows+3 {
		t.Errorf("the import says %+v", c.SeriesChange)
	}
	if a := s.audit(t); !a.Clean() || a.Imported != domain.MaxImportRows || a.Issued != 2 {
		t.Errorf("the audit says %s", summary(a))
	}
}
