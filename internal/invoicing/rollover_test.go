package invoicing_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/testdb"
	"countersign/internal/testdb/pgproxy"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// use makes a series and has the shop number by it.
func (s *shop) use(t *testing.T, in invoicing.CreateInvoiceSeriesInput) *sqlc.InvoiceSeries {
	t.Helper()
	out, err := s.CreateSeries(t.Context(), s.caller, in)
	if err != nil {
		t.Fatal(err)
	}
	s.series = out.Value.ID
	return out.Value
}

// yearly is a series that resets on 1 January in Berlin.
func yearly() invoicing.CreateInvoiceSeriesInput {
	reset, zone := domain.ResetYearly, "Europe/Berlin"
	return invoicing.CreateInvoiceSeriesInput{Code: "Y", Reset: &reset, TimeZone: &zone}
}

// numbers are what the shop's series has printed, in order.
func (s *shop) numbers(t *testing.T) []string {
	return testdb.Scan[[]string](t, s.DB, `SELECT coalesce(array_agg(number ORDER BY period_start, sequence), '{}') FROM invoices WHERE series_id = $1`, s.series)
}

// closed are the periods that the shop's series has left, with what they numbered.
func (s *shop) closed(t *testing.T) string {
	return testdb.Scan[string](t, s.DB, `SELECT coalesce(string_agg(format('%s: %s to %s', period_start, first_number, last_number), ', ' ORDER BY period_start), '')
		FROM series_periods WHERE series_id = $1`, s.series)
}

// Case 5 and its sisters: twenty allocations across the end of a period, to the tenth of a second,
// in the series' own zone. The old period runs on to its end, the new one starts at 1, once, and
// what is left behind is recorded.
func TestCase05TwentyAcrossTheEndOfAPeriod(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		reset        domain.SeriesReset
		zone         string
		start        int32
		before       string // the last tenth of the second before the period ends, in the zone
		first, after string // the first numbers of both periods
		closed       string
	}{
		{"a year", domain.ResetYearly, "Europe/Berlin", 1, "2026-12-31T23:59:59.9+01:00", "Y-2026-00001", "Y-2027-00001", "2026-01-01: 1 to 10"},
		{"a year far east", domain.ResetYearly, "Pacific/Kiritimati", 1, "2026-12-31T23:59:59.9+14:00", "Y-2026-00001", "Y-2027-00001", "2026-01-01: 1 to 10"},
		{"a month", domain.ResetMonthly, "America/New_York", 1, "2026-04-30T23:59:59.9-04:00", "Y-2026-04-00001", "Y-2026-05-00001", "2026-04-01: 1 to 10"},
		{"February of a leap year", domain.ResetMonthly, "UTC", 1, "2028-02-29T23:59:59.9Z", "Y-2028-02-00001", "Y-2028-03-00001", "2028-02-01: 1 to 10"},
		{"28 February of a leap year", domain.ResetMonthly, "UTC", 1, "2028-02-28T23:59:59.9Z", "Y-2028-02-00001", "Y-2028-02-00011", ""},
		{"February of another year", domain.ResetMonthly, "UTC", 1, "2026-02-28T23:59:59.9Z", "Y-2026-02-00001", "Y-2026-03-00001", "2026-02-01: 1 to 10"},
		{"a fiscal year in India", domain.ResetFiscalYearly, "Asia/Kolkata", 4, "2027-03-31T23:59:59.9+05:30", "Y/2026-27/00001", "Y/2027-28/00001", "2026-04-01: 1 to 10"},
		{"the year's end in a fiscal year", domain.ResetFiscalYearly, "Asia/Kolkata", 4, "2026-12-31T23:59:59.9+05:30", "Y/2026-27/00001", "Y/2026-27/00011", ""},
		{"a fiscal year after a leap day", domain.ResetFiscalYearly, "UTC", 3, "2028-02-29T23:59:59.9Z", "Y/2027-28/00001", "Y/2028-29/00001", "2027-03-01: 1 to 10"},
		// In Beirut the clocks go forward at midnight: 29 March begins at 01:00.
		{"a day whose midnight is skipped", domain.ResetMonthly, "Asia/Beirut", 1, "2026-03-28T23:59:59.9+02:00", "Y-2026-03-00001", "Y-2026-03-00011", ""},
		// In Cairo they go back at midnight: the last hour of that October comes twice.
		{"a month's last day of 25 hours", domain.ResetMonthly, "Africa/Cairo", 1, "2024-10-31T23:59:59.9+02:00", "Y-2024-10-00001", "Y-2024-11-00001", "2024-10-01: 1 to 10"},
		{"a night with a change of the clocks", domain.ResetMonthly, "America/Los_Angeles", 1, "2026-10-31T23:59:59.9-07:00", "Y-2026-10-00001", "Y-2026-11-00001", "2026-10-01: 1 to 10"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			start, err := time.Parse(time.RFC3339Nano, c.before)
			if err != nil {
				t.Fatal(err)
			}
			now := newClock(start)
			s := newShopAt(t, now.now)
			s.use(t, invoicing.CreateInvoiceSeriesInput{Code: "Y", Reset: &c.reset, TimeZone: &c.zone, FiscalYearStartMonth: &c.start})
			for i := range 20 { // ten before, ten at midnight and after
				now.set(start.Add(time.Duration(i) * 10 * time.Millisecond))
				s.take(t, s.input())
			}
			if got := s.numbers(t); len(got) != 20 || got[0] != c.first || got[10] != c.after {
				t.Errorf("the numbers are %v, want %s and, from the eleventh on, %s", got, c.first, c.after)
			}
			if got := s.closed(t); got != c.closed {
				t.Errorf("closed are %q, want %q", got, c.closed)
			}
			s.healthy(t)
		})
	}
}

// A period in which nothing is issued leaves no trace, and the next starts at 1 all the same; a
// day of any period before is refused.
func TestSkippedPeriodsAndClosedOnes(t *testing.T) {
	t.Parallel()
	now := newClock(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	s := newShopAt(t, now.now)
	s.use(t, yearly())
	s.take(t, s.input())
	s.take(t, s.input())
	now.set(time.Date(2029, 2, 1, 12, 0, 0, 0, time.UTC))
	s.take(t, s.input())
	if got := s.numbers(t); !slices.Equal(got, []string{"Y-2026-00001", "Y-2026-00002", "Y-2029-00001"}) {
		t.Errorf("the numbers are %v", got)
	}
	for _, day := range []string{"2026-06-01", "2026-12-31", "2028-01-01", "2028-12-31"} {
		in := s.input()
		in.IssueDate = date(t, day)
		_, err := s.Allocate(t.Context(), s.caller, in)
		wantCode(t, err, domain.CodePeriodClosed)
		if err == nil || !strings.Contains(err.Error(), day+" lies in a period that is closed") {
			t.Errorf("asked for %s: %v", day, err)
		}
	}
	in := s.input()
	in.IssueDate = date(t, "2029-01-31")
	_, err := s.Allocate(t.Context(), s.caller, in)
	wantCode(t, err, domain.CodePeriodClosed)
	if got := s.closed(t); got != "2026-01-01: 1 to 2" {
		t.Errorf("closed are %q", got)
	}
	s.healthy(t)
}

// Within a period the day's first allocation moves the counter, the others are one statement; so
// is every one of a series that resets.
func TestASeriesThatResetsIsOneStatementToo(t *testing.T) {
	t.Parallel()
	s := newShopAt(t, newClock(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)).now)
	s.use(t, yearly())
	s.take(t, s.input())
	sent := s.Sent()
	s.take(t, s.input())
	if got := sent(); !slices.Equal(got, []string{"AllocateInvoices"}) {
		t.Errorf("sent %v", got)
	}
}

// The start of a period is decided once, by whoever comes first: fifty at once, past midnight, get
// 1 to 50 of the new one.
func TestFiftyAtOnceInANewPeriod(t *testing.T) {
	t.Parallel()
	now := newClock(time.Date(2026, 12, 31, 12, 0, 0, 0, time.UTC))
	s := newShopAt(t, now.now)
	s.use(t, yearly())
	together(7, func(int) { s.take(t, s.input()) })
	now.set(time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC))
	together(50, func(int) { s.take(t, s.input()) })
	want := make([]string, 0, 57)
	for i := range 7 {
		want = append(want, fmt.Sprintf("Y-2026-%05d", i+1))
	}
	for i := range 50 {
		want = append(want, fmt.Sprintf("Y-2027-%05d", i+1))
	}
	if got := s.numbers(t); !slices.Equal(got, want) {
		t.Errorf("the numbers are %v", got)
	}
	if got := s.closed(t); got != "2026-01-01: 1 to 7" {
		t.Errorf("closed are %q", got)
	}
	s.healthy(t)
}

// Two processes whose clocks are an hour apart, each working from an hour before midnight of New
// Year's Eve to an hour after by its own clock, and two more of each: one sequence. No number of the
// old year follows one of the new, whatever the slow clocks say: those wait, half an hour before it by their clocks,
// until the new year has begun, and are given its numbers from then on.
func TestProcessesWithClocksAnHourApartAroundMidnight(t *testing.T) {
	t.Parallel()
	midnight := time.Date(2026, 12, 31, 23, 0, 0, 0, time.UTC) // in Berlin
	s := newShopAt(t, newClock(midnight.Add(-2*time.Hour)).now)
	s.use(t, yearly())
	s.take(t, s.input())
	var workers sync.WaitGroup
	const processes, each = 4, 20
	var given [processes][]string // in the order of their requests
	stdin, gate, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	begin := sync.OnceFunc(func() { _ = gate.Close() })
	for i := range processes {
		j := s.job("allocate", fmt.Sprint(i), each)
		j.Midnight, j.Ahead = midnight, time.Duration(i%2)*time.Hour
		if j.Ahead == 0 {
			j.Waits, j.stdin = each/4, stdin
		}
		process, out := j.start(t)
		workers.Go(func() {
			defer begin() // in any case
			lines := bufio.NewScanner(out)
			for lines.Scan() {
				if given[i] = append(given[i], lines.Text()); strings.HasPrefix(lines.Text(), "Y-2027-") {
					begin()
				}
			}
			if err := errors.Join(lines.Err(), process.Wait()); err != nil {
				t.Errorf("process %d: %v", i, err)
			}
		})
	}
	workers.Wait()
	for i, numbers := range given {
		begun := false // the new year, before this request was sent
		for n, number := range numbers {
			begun = begun || i%2 == 0 && n == each/4
			if young := strings.HasPrefix(number, "Y-2027-"); begun && !young {
				t.Errorf("process %d was given %s when the new year had begun: %v", i, number, numbers)
			} else {
				begun = young
			}
		}
		if len(numbers) != each {
			t.Errorf("process %d was given %d numbers", i, len(numbers))
		}
	}
	var old, young int
	for _, number := range s.numbers(t) { // the old year's, then the new one's
		want := ""
		if strings.HasPrefix(number, "Y-2026-") {
			old++
			want = fmt.Sprintf("Y-2026-%05d", old)
		} else {
			young++
			want = fmt.Sprintf("Y-2027-%05d", young)
		}
		if number != want {
			t.Errorf("got %s, want %s", number, want)
		}
	}
	if old+young != 1+processes*each || old < 1 || young < processes*each/4 {
		t.Errorf("%d numbers of the old year and %d of the new, of %d", old, young, 1+processes*each)
	}
	if got, want := s.closed(t), fmt.Sprintf("2026-01-01: 1 to %d", old); got != want {
		t.Errorf("closed are %q, want %q", got, want)
	}
	s.healthy(t)
}

// Proves the index of the printed numbers where a format has two digits of the year: F27-0001 is not given
// again after a century, and a business that comes with such numbers goes on with them.
func TestTwoDigitsOfTheYear(t *testing.T) {
	t.Parallel()
	now := newClock(time.Date(2026, 12, 31, 12, 0, 0, 0, time.UTC))
	s := newShopAt(t, now.now)
	format, in := domain.NumberFormat("F{YY}-{N:4}"), yearly()
	in.Format = &format
	s.use(t, in)
	s.imports(t, s.importing(&[]domain.ImportedNumber{{Printed: new("F26-0001"), Date: date(t, "2026-12-30")}}))
	s.take(t, s.input())
	for _, year := range []int{2027, 2125} {
		now.set(time.Date(year, 1, 1, 12, 0, 0, 0, time.UTC))
		s.take(t, s.input())
	}
	if got := s.numbers(t); !slices.Equal(got, []string{"F26-0002", "F27-0001", "F25-0001"}) {
		t.Errorf("the numbers are %v", got)
	}
	s.healthy(t)
	now.set(time.Date(2127, 1, 1, 12, 0, 0, 0, time.UTC))
	_, err := s.Allocate(t.Context(), s.caller, s.input())
	wantCode(t, err, domain.CodeSeriesInconsistent)
	if got := s.closed(t); got != "2026-01-01: 1 to 2, 2027-01-01: 1 to 1" {
		t.Errorf("closed are %q", got)
	}
	s.healthy(t)
}

// newYear is a shop whose yearly series stands in the old year, and whose clock says the new one.
func newYear(t *testing.T) (*shop, *clock) {
	t.Helper()
	now := newClock(time.Date(2026, 12, 31, 12, 0, 0, 0, time.UTC))
	s := newShopAt(t, now.now)
	s.use(t, yearly())
	s.take(t, s.input())
	now.set(time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC))
	return s, now
}

// twice runs the first two statements of a rollover in two transactions at once: the second one
// looks at the counter while the first has closed the year and not committed. It returns the
// second one's error.
func twice(t *testing.T, s *shop, guard string) error {
	t.Helper()
	ctx := context.Background()
	closeYear := func(q, plain *sqlc.Queries) error {
		counter, err := q.LockSeriesCounter(ctx, sqlc.LockSeriesCounterParams{TenantID: s.caller.TenantID, SeriesID: s.series})
		if err != nil {
			return err
		}
		series, err := plain.GetSeries(ctx, sqlc.GetSeriesParams{TenantID: s.caller.TenantID, Ids: []domain.SeriesID{s.series}})
		if err != nil {
			return err
		}
		to, err := series[0].Rule().Move(counter.State(), nil, domain.NewDate(2027, 1, 1))
		if err != nil || !to.Closes {
			return err
		}
		if _, err := plain.CloseSeriesPeriod(ctx, sqlc.CloseSeriesPeriodParams{
			TenantID: s.caller.TenantID, SeriesID: s.series, PeriodStart: counter.PeriodStart, LastNumber: to.LastNumber, ClosedAt: time.Now(),
		}); err != nil {
			return err
		}
		_, err = plain.MoveSeriesCounter(ctx, sqlc.MoveSeriesCounterParams{
			TenantID: s.caller.TenantID, SeriesID: s.series, PeriodStart: to.PeriodStart, StartsAnew: to.StartsAnew,
			IssueDate: to.IssueDate, IssueDateEnds: to.IssueDate.End(time.UTC), NumberPrefix: "Y-2027-", NumberWidth: 5,
		})
		return err
	}
	conns := []sqlc.DBTX{s.Owner(t), s.Owner(t)}
	queriers := func(db sqlc.DBTX) (*sqlc.Queries, *sqlc.Queries) {
		if guard == "" {
			return sqlc.New(db), sqlc.New(db)
		}
		return testdb.Without(t, db, guard), sqlc.New(db)
	}
	first := s.Owner(t)
	tx, err := first.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := closeYear(queriers(tx)); err != nil {
		t.Fatalf("the first: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- closeYear(queriers(conns[1])) }()
	s.AwaitLockWaits(t, 1)
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	return <-done
}

// Proves the lock of LockSeriesCounter at the end of a period: with it the second looks at a
// counter that is in the new year, and closes nothing.
func TestWithTheLockAPeriodIsClosedOnce(t *testing.T) {
	t.Parallel()
	s, _ := newYear(t)
	if err := twice(t, s, ""); err != nil {
		t.Errorf("the second: %v", err)
	}
	if got := s.closed(t); got != "2026-01-01: 1 to 1" {
		t.Errorf("closed are %q", got)
	}
	s.take(t, s.input())
	s.healthy(t)
}

// Proves the index behind that lock, series_periods_pkey: without the lock both leave the same
// year, and the index refuses the second.
func TestWithoutTheLockTheRecordRefuses(t *testing.T) {
	t.Parallel()
	s, _ := newYear(t)
	var refused *pgconn.PgError
	if err := twice(t, s, lock); !errors.As(err, &refused) || refused.ConstraintName != "series_periods_pkey" {
		t.Errorf("the second got %v, want a violation of series_periods_pkey", err)
	}
	s.take(t, s.input())
	s.healthy(t)
}

// Shows what both are for: without them a period is closed twice.
func TestWithoutLockAndRecordAPeriodIsClosedTwice(t *testing.T) {
	t.Parallel()
	s, _ := newYear(t)
	s.Exec(t, "ALTER TABLE series_periods DROP CONSTRAINT series_periods_pkey")
	if err := twice(t, s, lock); err != nil {
		t.Fatalf("something else refused: %v", err)
	}
	if got := s.closed(t); got != "2026-01-01: 1 to 1, 2026-01-01: 1 to 1" {
		t.Errorf("closed are %q, expected the year twice", got)
	}
}

// Proves that the period is part of invoices_sequence_key: the numbers of a year do not stand in
// the way of the next year's, and one of the same year does.
func TestANumberIsTakenOncePerPeriod(t *testing.T) {
	t.Parallel()
	s, _ := newYear(t)
	s.take(t, s.input())
	if got := s.sequences(t); !slices.Equal(got, []int64{1, 1}) {
		t.Fatalf("the sequences are %v, want 1 twice", got)
	}
	s.Exec(t, "UPDATE series_counters SET next_number = 1 WHERE series_id = $1", s.series)
	_, err := s.Allocate(t.Context(), s.caller, s.input())
	wantCode(t, err, domain.CodeSeriesInconsistent)
}

// The rollover's transaction is one: a connection that is cut at any of its messages, COMMIT
// among them, before the server saw it or after it had answered, leaves the new year begun once,
// with one number 1, or not begun, and the request takes its number. Where the answer of the first
// look was lost the outcome is unknown, and the client asks again under its key.
func TestARolloverThatIsCutIsWholeOrNothing(t *testing.T) {
	t.Parallel()
	s, now := newYear(t)
	proxy := pgproxy.New(t, s.URL)
	through := *s
	through.db = txn.New(s.PoolAt(t, proxy.URL(), 4), txn.Settings{Clock: now.now})
	through.Service = serviceOn(through.db)
	through.take(t, s.input()) // opens the connection
	year, cuts := 2028, 0
	for name, cut := range map[string]func(pgproxy.Point) *pgproxy.Fault{"before": proxy.CutBefore, "after": proxy.CutAfter} {
		for k := 1; ; k++ {
			now.set(time.Date(year, 1, 1, 12, 0, 0, 0, time.UTC))
			fault := cut(pgproxy.FrontendMessage(k))
			in, key := s.input(), fmt.Sprint(year)
			in.IdempotencyKey = &key
			out, err := through.Allocate(t.Context(), s.caller, in)
			fault.Disarm()
			if codeOf(err) == domain.CodeOutcomeUnknown {
				out, err = through.Allocate(t.Context(), s.caller, in)
			}
			if err != nil {
				t.Fatalf("cut %s message %d: %v", name, k, err)
			}
			if want := fmt.Sprintf("Y-%d-00001", year); *out.Value.Number != want {
				t.Errorf("cut %s message %d: got %s, want %s", name, k, *out.Value.Number, want)
			}
			year++
			if cuts += fault.Count(); fault.Count() == 0 {
				break
			}
		}
	}
	if cuts < 10 {
		t.Errorf("only %d cuts", cuts)
	}
	if got := strings.Count(s.closed(t), "1 to 1"); got != year-2027 {
		t.Errorf("closed are %q, want %d years of one number", s.closed(t), year-2027)
	}
	s.healthy(t)
}

// A process that is killed in the middle of a rollover leaves nothing of it: the next allocation
// begins the year.
func TestAKilledRolloverLeavesNothing(t *testing.T) {
	t.Parallel()
	s, _ := newYear(t)
	for i := range 5 {
		process, out := s.job("die-in-rollover", fmt.Sprint(i), 1).start(t)
		awaitLocked(t, out)
		if err := process.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = process.Wait()
	}
	if got := s.closed(t); got != "" {
		t.Errorf("closed are %q", got)
	}
	if got := *s.take(t, s.input()).Number; got != "Y-2027-00001" {
		t.Errorf("the next number is %s", got)
	}
	s.healthy(t)
}
