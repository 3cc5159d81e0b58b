package invoicing_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign/internal/domain"
	"countersign/internal/testdb"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// together runs fn n times at once and waits for all.
func together(n int, fn func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			fn(i)
		})
	}
	close(start)
	wg.Wait()
}

// An invoice gets the next number, its lines and their sum.
func TestAnInvoiceIsNumberedAndSummed(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	in := s.input()
	in.Lines = append(in.Lines, domain.InvoiceLineInput{Description: "Discount", Quantity: 1, UnitAmountMinor: -900})
	invoice := s.take(t, in)
	if *invoice.Number != "NEW-00001" || *invoice.Sequence != 1 || invoice.TotalMinor != 9000 || invoice.Status != domain.InvoicePending {
		t.Errorf("got %s, %d, %d minor units, %s", *invoice.Number, *invoice.Sequence, invoice.TotalMinor, invoice.Status)
	}
	s.healthy(t)
}

// What an allocation answers is the row as it is stored, alone and in a batch: only what the counter
// decides is read back. A column that gets another value in the statement fails here.
func TestAnAllocatedRowIsTheStoredOne(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	in := s.input()
	in.Lines = append(in.Lines, domain.InvoiceLineInput{Description: "Rook", Quantity: 3, UnitAmountMinor: 333, TaxRate: decimal(t, "19.5")})
	today := *s.take(t, in).IssueDate
	in.IssueDate = &today
	key := "a key"
	keyed := in
	keyed.IdempotencyKey = &key
	var mu sync.Mutex
	answered := []*sqlc.Invoice{s.take(t, in), s.take(t, keyed)}
	together(20, func(int) {
		row := s.take(t, in)
		mu.Lock()
		defer mu.Unlock()
		answered = append(answered, row)
	})
	for _, row := range answered {
		if stored := s.get(t, row.ID); printed(row) != printed(stored) {
			t.Errorf("answered\n%s\nstored\n%s", printed(row), printed(stored))
		}
	}
}

// printed is a row as text: the same for two that are equal, however their decimals and times are held.
func printed(row *sqlc.Invoice) string {
	in := *row
	in.CreatedAt, in.UpdatedAt.Time = in.CreatedAt.UTC(), in.UpdatedAt.UTC()
	text, err := json.Marshal(in)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// Case 1: 50 goroutines on a brand-new series get exactly 1 to 50.
func TestCase01FiftyAtOnceOnABrandNewSeries(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	together(50, func(int) { s.take(t, s.input()) })
	s.wantOneTo(t, 50)
	s.healthy(t)
}

// Case 2: 200 at once on a pool of five get 1 to 200, and no client sees an error.
func TestCase02TwoHundredOnFiveConnections(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.db = txn.New(s.NewPool(t, 5), txn.Settings{AcquireTimeout: time.Minute})
	s.Service = serviceOn(s.db)
	together(200, func(int) { s.take(t, s.input()) })
	s.wantOneTo(t, 200)
	s.healthy(t)
}

// Case 4, in the database's own words: padding never cuts, and without padding numbers go on past
// nine.
func TestCase04PaddingNeverCuts(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for format, at := range map[domain.NumberFormat][2]any{
		"P{N:3}": {999, []string{"P999", "P1000", "P1001"}},
		"Q{N}":   {9, []string{"Q9", "Q10", "Q11"}},
	} {
		s.series = s.newSeries(t, string(format[0]), format)
		s.take(t, s.input()) // opens the counter's day
		s.Exec(t, "UPDATE series_counters SET next_number = $1 WHERE series_id = $2", at[0], s.series)
		for _, want := range at[1].([]string) {
			if got := *s.take(t, s.input()).Number; got != want {
				t.Errorf("%s: got %s, want %s", format, got, want)
			}
		}
	}
}

// Case 13, and its sister of case 11: what is rolled back leaves no hole. Ten of a hundred
// allocations at once are for a customer that does not exist, which the database finds out after
// the number was computed; the others get 1 to 90.
func TestCase13RolledBackAllocationsLeaveNoHole(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	together(100, func(i int) {
		in := s.input()
		if i%10 == 3 {
			in.CustomerID = domain.NewID[domain.CustomerID]()
			_, err := s.Allocate(t.Context(), s.caller, in)
			wantCode(t, err, domain.CodeNotFound)
			return
		}
		s.take(t, in)
	})
	s.wantOneTo(t, 90)
	s.healthy(t)
}

// Case 11: a constraint that has nothing to do with numbers is not taken for a duplicate: it
// surfaces as what it is, is not retried, and the number stays free.
func TestCase11AnotherConstraintIsShownAsWhatItIs(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.take(t, s.input())
	s.Exec(t, "ALTER TABLE invoice_lines ADD CONSTRAINT invoice_lines_no_bishops CHECK (description <> 'Bishop')")
	var runs atomic.Int32
	s.Before("AllocateInvoices", func(context.Context) { runs.Add(1) })
	in := s.input()
	in.Lines[0].Description = "Bishop"
	_, err := s.Allocate(t.Context(), s.caller, in)
	wantCode(t, err, domain.CodeInternal)
	if runs.Load() != 1 {
		t.Errorf("the statement ran %d times", runs.Load())
	}
	if next := s.take(t, s.input()); *next.Sequence != 2 {
		t.Errorf("the next number is %d, want 2", *next.Sequence)
	}
	s.healthy(t)
}

// One allocation is one statement, without BEGIN and COMMIT around it, once the counter stands on
// the day: nothing slow can happen inside its transaction.
func TestAnAllocationIsOneStatement(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.take(t, s.input())
	sent := s.Sent()
	s.take(t, s.input())
	if got := fmt.Sprint(sent()); got != "[AllocateInvoices]" {
		t.Errorf("sent %s", got)
	}
}

// Two series never wait for each other, nor do two tenants: with the lock of one series held, the
// other numbers.
func TestSeriesDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	held := s.series
	tx, err := s.Owner(t).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), "SELECT FROM series_counters WHERE series_id = $1 FOR UPDATE", held); err != nil {
		t.Fatal(err)
	}
	s.series = s.newSeries(t, "FREE", "{CODE}{N}")
	s.take(t, s.input())
	s.take(t, s.input())
	s.wantOneTo(t, 2)
}

// Case 7, and its sisters: whatever is held on an invoice, its customer or its series elsewhere (a
// payment's update, a fold's lock on the customer) does not hold up the next number.
func TestCase07AnUpdateHeldOpenElsewhereDoesNotBlock(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	newest := s.take(t, s.input())
	for name, sql := range map[string]string{
		"the newest invoice is being updated": "UPDATE invoices SET updated_at = updated_at WHERE id = $1",
		"its customer is locked":              "SELECT FROM customers WHERE id = (SELECT customer_id FROM invoices WHERE id = $1) FOR NO KEY UPDATE",
		"its series is shared":                "SELECT FROM invoice_series WHERE id = (SELECT series_id FROM invoices WHERE id = $1) FOR SHARE",
	} {
		tx, err := s.Owner(t).Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), sql, newest.ID); err != nil {
			t.Fatal(name, err)
		}
		s.take(t, s.input()) // its lock_timeout would end a wait with BUSY
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.wantOneTo(t, 4)
	s.healthy(t)
}

// Case 6: one request takes numbers of series A then B, another of B then A, at the same moment.
// Each allocation commits by itself, so neither waits for the other.
func TestCase06TwoSeriesInOppositeOrder(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	a, b := s.series, s.newSeries(t, "B", "{CODE}{N}")
	orders := [][]domain.SeriesID{{a, b}, {b, a}}
	together(2, func(i int) {
		for range 20 {
			for _, series := range orders[i] {
				in := s.input()
				in.SeriesID = series
				s.take(t, in)
			}
		}
	})
	for _, s.series = range []domain.SeriesID{a, b} {
		s.wantOneTo(t, 40)
	}
	s.healthy(t)
}

// Case 26, as far as it is about invoices: amounts are exact, or refused before anything is
// written.
func TestCase26AmountsAtTheEdge(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for _, c := range []struct {
		quantity int32
		unit     domain.Cents
		total    domain.Cents
		code     domain.Code
	}{
		{3, 9_999_999_999, 29_999_999_997, ""},
		{1, 1<<53 + 1, 1<<53 + 1, ""},
		{1, 1<<63 - 1, 1<<63 - 1, ""},
		{2, 9_000_000_000_000_000_000, 0, domain.CodeAmountOverflow},
		{0, 100, 0, domain.CodeInvalidQuantity},
		{-5, 100, 0, domain.CodeInvalidQuantity},
		{1, -1, 0, domain.CodeNegativeTotal},
	} {
		in := s.input()
		in.Lines[0].Quantity, in.Lines[0].UnitAmountMinor = c.quantity, c.unit
		out, err := s.Allocate(t.Context(), s.caller, in)
		wantCode(t, err, c.code)
		if err == nil && out.Value.TotalMinor != c.total {
			t.Errorf("%d × %d: got %d, want %d", c.quantity, c.unit, out.Value.TotalMinor, c.total)
		}
	}
	s.wantOneTo(t, 3)
	s.healthy(t)
}

// A counter that was restored behind its invoices: the number it gives out is taken. The whole
// transaction is run once more, then it is SERIES_INCONSISTENT, and nothing is written; put right,
// it numbers on.
func TestACounterBehindItsInvoices(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for range 3 {
		s.take(t, s.input())
	}
	s.Exec(t, "UPDATE series_counters SET next_number = 2 WHERE series_id = $1", s.series)
	var runs atomic.Int32
	s.Before("AllocateInvoices", func(context.Context) { runs.Add(1) })
	_, err := s.Allocate(t.Context(), s.caller, s.input())
	wantCode(t, err, domain.CodeSeriesInconsistent)
	if runs.Load() != 2 {
		t.Errorf("the statement ran %d times, want twice", runs.Load())
	}
	s.wantOneTo(t, 3)
	if broken := s.broken(t); len(broken) != 1 || broken[0] != "COUNTER_MATCHES_DATA" {
		t.Errorf("the doctor finds %q", broken)
	}
	s.Exec(t, "UPDATE series_counters SET next_number = 4 WHERE series_id = $1", s.series)
	s.take(t, s.input())
	s.wantOneTo(t, 4)
	s.healthy(t)
}

// The same, mended between the two runs: the second one succeeds, and the client never knows.
func TestACounterMendedBetweenTheRuns(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for range 3 {
		s.take(t, s.input())
	}
	s.Exec(t, "UPDATE series_counters SET next_number = 2 WHERE series_id = $1", s.series)
	var runs atomic.Int32
	s.Before("AllocateInvoices", func(context.Context) {
		if runs.Add(1) == 2 {
			s.Exec(t, "UPDATE series_counters SET next_number = 4 WHERE series_id = $1", s.series)
		}
	})
	s.take(t, s.input())
	s.wantOneTo(t, 4)
	s.healthy(t)
}

// What names nothing of the tenant is not found, and a series for credit notes numbers no invoice.
func TestWhatCannotBeNumbered(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	absent := s.input()
	absent.SeriesID = domain.NewID[domain.SeriesID]()
	_, err := s.Allocate(t.Context(), s.caller, absent)
	wantCode(t, err, domain.CodeNotFound)

	credit := s.input()
	credit.SeriesID = testdb.Scan[domain.SeriesID](t, s.DB, "SELECT id FROM invoice_series WHERE code = 'CN'")
	_, err = s.Allocate(t.Context(), s.caller, credit)
	wantCode(t, err, domain.CodeSeriesKindMismatch)

	none := s.input()
	none.Lines = nil
	_, err = s.Allocate(t.Context(), s.caller, none)
	wantCode(t, err, domain.CodeBadInput)

	// A foreign tenant's series and customer answer like absent ones.
	foreign, _, err := s.CreateTenant(t.Context(), "foreign", "Foreign")
	if err != nil {
		t.Fatal(err)
	}
	stranger := s.caller
	stranger.TenantID = foreign.ID
	_, err = s.Allocate(t.Context(), stranger, s.input())
	wantCode(t, err, domain.CodeNotFound)
	theirs := s.input()
	theirs.SeriesID = testdb.Scan[domain.SeriesID](t, s.DB, "SELECT id FROM invoice_series WHERE code = 'INV' AND tenant_id = $1", foreign.ID)
	_, err = s.Allocate(t.Context(), stranger, theirs)
	wantCode(t, err, domain.CodeNotFound)
	s.healthy(t)
}
