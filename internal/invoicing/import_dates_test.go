package invoicing_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// dated is a row of a number that was issued elsewhere on a day.
func dated(t *testing.T, number int64, day string) domain.ImportedNumber {
	return domain.ImportedNumber{Number: &number, Date: date(t, day)}
}

// wantRowAtFault expects an import to be refused for the day of its first row.
func wantRowAtFault(t *testing.T, err error, says string) {
	t.Helper()
	wantCode(t, err, domain.CodeInvalidRow)
	if faults := domain.UserErrors(err); len(faults) != 1 || strings.Join(faults[0].GetPath(), " ") != "input numbers 0 date" || !strings.Contains(faults[0].GetMessage(), says) {
		t.Errorf("the faults are %v, want one that says %q", faults, says)
	}
}

// What is imported contradicts no document of this system: a number after one that was issued here is not of a day
// before, nor a number before one of a day after.
func TestAnImportContradictsNoInvoice(t *testing.T) {
	t.Parallel()
	now := newClock(time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC))
	s := newShopAt(t, now.now)
	s.takeMany(t, 2)
	s.Exec(t, `UPDATE series_counters SET next_number = 6 WHERE series_id = $1`, s.series)
	now.set(time.Date(2026, 6, 17, 12, 0, 0, 0, time.UTC))
	s.take(t, s.input())
	now.set(time.Date(2026, 6, 20, 12, 0, 0, 0, time.UTC))
	for _, c := range []struct {
		row  domain.ImportedNumber
		says string
	}{
		{dated(t, 7, "2026-06-16"), "2026-06-16 of number 7 is before 2026-06-17, on which the lower number 6 was issued here"},
		{dated(t, 4, "2026-06-14"), "2026-06-14 of number 4 is before 2026-06-15, on which the lower number 2 was issued here"},
		{dated(t, 4, "2026-06-18"), "2026-06-18 of number 4 is after 2026-06-17, on which the higher number 6 was issued here"},
	} {
		for _, dry := range []bool{true, false} {
			in := s.importing(&[]domain.ImportedNumber{c.row, skipped(3, 3, "torn forms")})
			in.DryRun = &dry
			_, err := s.ImportNumbers(t.Context(), s.caller, in)
			wantRowAtFault(t, err, c.says)
		}
	}
	if got := s.next(t); got != 7 {
		t.Errorf("a refused import moved the counter to %d", got)
	}
	s.imports(t, s.importing(&[]domain.ImportedNumber{dated(t, 3, "2026-06-15"), dated(t, 4, "2026-06-16"), dated(t, 5, "2026-06-17"), dated(t, 7, "2026-06-17")}))
	s.wantAudit(t, "1 to 7: 3 issued, 0 void, 4 imported, 0 voided elsewhere, 0 skipped")
	s.healthy(t)
}

// Proves the look at the days under the lock: an invoice of an earlier day that is issued after the first look, above
// the numbers of the import, refuses it.
func TestAnInvoiceBeforeTheLockRefusesALaterDayBelowIt(t *testing.T) {
	t.Parallel()
	now := newClock(time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC))
	s := newShopAt(t, now.now)
	s.takeMany(t, 2)
	s.Exec(t, `UPDATE series_counters SET next_number = 4 WHERE series_id = $1`, s.series)
	now.set(time.Date(2026, 6, 20, 12, 0, 0, 0, time.UTC))
	gate := s.Gate(t, "LockSeriesCounter")
	done := make(chan error, 1)
	go func() {
		_, err := s.ImportNumbers(context.Background(), s.caller, s.importing(&[]domain.ImportedNumber{dated(t, 3, "2026-06-20")}))
		done <- err
	}()
	gate.Await(t, 1)
	in := s.input()
	in.IssueDate = date(t, "2026-06-15") // the day that the counter is in: this takes one statement, and not that lock
	s.take(t, in)
	gate.Open()
	wantRowAtFault(t, <-done, "after 2026-06-15, on which the higher number 4")
	if got := *s.take(t, s.input()).Sequence; got != 5 {
		t.Errorf("then comes %d", got)
	}
}

// Another system's record may be out of order: it is taken over as it is, and the dry run, the result and the audit tell how
// many numbers are of a day before a lower one's. The series' own numbers are in order, and none of it is unclean.
func TestAnImportThatIsOutOfOrderIsTold(t *testing.T) {
	t.Parallel()
	s := newShopAt(t, newClock(time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)).now)
	rows := []domain.ImportedNumber{dated(t, 1, "2026-05-01"), dated(t, 2, "2026-03-01"), dated(t, 4, "2026-05-02"), dated(t, 5, "2026-04-30"), skipped(3, 3, "torn forms")}
	rows[3].LastNumber = new(int64(6))
	for _, dry := range []bool{true, false} {
		in := s.importing(&rows)
		in.DryRun = &dry
		c := s.imports(t, in)
		a, err := s.AuditOf(t.Context(), s.caller, c, nil)
		if err != nil || !a.Clean() || a.OutOfOrder != 3 || *a.FirstOutOfOrder() != 2 {
			t.Errorf("dry run %v: %d are out of order, %v", dry, a.OutOfOrder, err)
		}
	}
	s.imports(t, s.importing(&[]domain.ImportedNumber{dated(t, 7, "2026-05-01")})) // of an import before
	s.takeMany(t, 2)
	if a := s.audit(t); !a.Clean() || a.OutOfOrder != 4 || *a.FirstOutOfOrder() != 2 {
		t.Errorf("%d are out of order, clean %v", a.OutOfOrder, a.Clean())
	}
	s.healthy(t)
	// However many lines a stretch has, a day is held against all that come before.
	never := domain.UnusedPeriod
	for size := int32(1); size <= 9; size++ {
		arg := sqlc.TallyLedgerParams{TenantID: s.caller.TenantID, SeriesID: &s.series, PeriodStart: &never, UpToNumber: new(int64(1 << 62)), RowLimit: size}
		var n, first int64
		for {
			row, err := sqlc.New(s.Pool).TallyLedger(t.Context(), arg)
			if err != nil {
				t.Fatal(err)
			}
			if n += row.OutOfOrder; first == 0 {
				first = row.FirstOutOfOrder
			}
			if arg.AfterNumber, arg.Covered, arg.Latest = row.AfterNumber, row.Covered, row.Latest; row.LineCount < int64(size) {
				break
			}
		}
		if n != 4 || first != 2 {
			t.Errorf("in stretches of %d: %d are out of order, from %d on", size, n, first)
		}
	}
}

// A series of this system's own making has nothing out of order, whatever day was asked for.
func TestTheSeriesOwnNumbersAreInOrder(t *testing.T) {
	t.Parallel()
	s := newShopAt(t, newClock(time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)).now)
	for _, day := range []string{"2026-06-13", "2026-06-13", "2026-06-15"} {
		in := s.input()
		in.IssueDate = date(t, day)
		s.take(t, in)
	}
	if a := s.audit(t); !a.Clean() || a.OutOfOrder != 0 || a.FirstOutOfOrder() != nil {
		t.Errorf("%d are out of order", a.OutOfOrder)
	}
}

// A hundred thousand rows of days are checked in one statement more, however few make one entry.
func TestTheDaysOfManyRowsAreCheckedAtOnce(t *testing.T) {
	t.Parallel()
	s := newShopAt(t, newClock(time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)).now)
	s.db = txn.New(s.Pool, txn.Settings{WriteTimeout: 2 * time.Minute, Clock: s.db.Clock}) // a test's machine may be slow
	s.Service = serviceOn(s.db)
	rows := make([]domain.ImportedNumber, domain.MaxImportRows)
	day := [2]*domain.Date{date(t, "2026-05-01"), date(t, "2026-05-02")}
	for i := range rows {
		rows[i] = domain.ImportedNumber{Number: new(int64(i + 1)), Date: day[i%2]}
	}
	in := s.importing(&rows)
	in.DryRun = nil
	sent := s.Sent()
	c := s.imports(t, in)
	n := 0
	for _, name := range sent() {
		if name == "ListContradictedRuns" {
			n++
		}
	}
	a, err := s.AuditOf(t.Context(), s.caller, c, nil)
	if err != nil || n != 1 || a.OutOfOrder != domain.MaxImportRows/2-1 || *a.FirstOutOfOrder() != 3 {
		t.Errorf("%d statements; %d are out of order, %v", n, a.OutOfOrder, err)
	}
}
