package invoicing_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"countersign/internal/domain"
	"countersign/internal/invoicing"
)

// clock is a clock that a test sets.
type clock struct{ atomic.Pointer[time.Time] }

func newClock(t time.Time) *clock {
	c := &clock{}
	c.set(t)
	return c
}

func (c *clock) set(t time.Time) { c.Store(&t) }
func (c *clock) now() time.Time  { return *c.Load() }

func date(t *testing.T, s string) *domain.Date {
	t.Helper()
	var d domain.Date
	if err := d.UnmarshalGQL(s); err != nil {
		t.Fatal(err)
	}
	return &d
}

// The day of issue is the one in the series' zone, to the microsecond, and it is printed.
func TestTheDayIsTheSeriesOwn(t *testing.T) {
	t.Parallel()
	c := newClock(time.Date(2026, 12, 31, 22, 59, 59, 999_999_000, time.UTC)) // 23:59:59.999999 in Berlin
	s := newShopAt(t, c.now)
	zone, format := "Europe/Berlin", domain.NumberFormat("{CODE}/{YYYY}-{MM}-{DD}/{N:3}")
	out, err := s.CreateSeries(t.Context(), s.caller, invoicing.CreateInvoiceSeriesInput{Code: "DE", Format: &format, TimeZone: &zone})
	if err != nil {
		t.Fatal(err)
	}
	s.series = out.Value.ID
	if got := *s.take(t, s.input()).Number; got != "DE/2026-12-31/001" {
		t.Errorf("a microsecond before midnight: %s", got)
	}
	c.set(time.Date(2026, 12, 31, 23, 0, 0, 0, time.UTC))
	if got := *s.take(t, s.input()).Number; got != "DE/2027-01-01/002" {
		t.Errorf("at midnight: %s", got)
	}
	s.healthy(t)
}

// A fiscal year that starts in April prints both of its years.
func TestTheFiscalYearIsPrinted(t *testing.T) {
	t.Parallel()
	c := newClock(time.Date(2027, 3, 31, 12, 0, 0, 0, time.UTC))
	s := newShopAt(t, c.now)
	format, april := domain.NumberFormat("INV/{FY}/{N:5}"), int32(4)
	out, err := s.CreateSeries(t.Context(), s.caller, invoicing.CreateInvoiceSeriesInput{Code: "IN", Format: &format, FiscalYearStartMonth: &april})
	if err != nil {
		t.Fatal(err)
	}
	s.series = out.Value.ID
	if got := *s.take(t, s.input()).Number; got != "INV/2026-27/00001" {
		t.Errorf("in March: %s", got)
	}
	c.set(time.Date(2027, 4, 1, 12, 0, 0, 0, time.UTC))
	if got := *s.take(t, s.input()).Number; got != "INV/2027-28/00002" {
		t.Errorf("in April: %s", got)
	}
}

// Which day an invoice may be issued on: no later than today, no earlier than the last one.
func TestIssueDates(t *testing.T) {
	t.Parallel()
	s := newShopAt(t, newClock(time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)).now)
	for _, c := range []struct {
		asked string
		code  domain.Code
		day   string
	}{
		{"2026-06-16", domain.CodeBadInput, ""},     // tomorrow
		{"2026-06-01", "", "2026-06-01"},            // a new series may start in the past
		{"2026-06-10", "", "2026-06-10"},            // and go forward
		{"2026-06-10", "", "2026-06-10"},            // stay
		{"2026-06-09", domain.CodePeriodClosed, ""}, // but not back
		{"", "", "2026-06-15"},                      // today
		{"2026-06-10", domain.CodePeriodClosed, ""},
		{"2026-06-15", "", "2026-06-15"},
	} {
		in := s.input()
		if c.asked != "" {
			in.IssueDate = date(t, c.asked)
		}
		out, err := s.Allocate(t.Context(), s.caller, in)
		wantCode(t, err, c.code)
		if err == nil && out.Value.IssueDate.String() != c.day {
			t.Errorf("asked for %q: issued on %s, want %s", c.asked, out.Value.IssueDate, c.day)
		}
		var closed *domain.PeriodClosedError
		if errors.As(err, &closed) && closed.LastIssueDate.Before(date(t, c.asked).Time) {
			t.Errorf("asked for %s: the last date is said to be %s", c.asked, closed.LastIssueDate)
		}
	}
	s.wantOneTo(t, 5)
	s.healthy(t)
}

// Two servers whose clocks are an hour apart, around midnight: whatever order they number in, the
// days follow the numbers.
func TestServersWithDifferentClocksNumberInOrder(t *testing.T) {
	t.Parallel()
	fast := newClock(time.Date(2026, 5, 1, 0, 20, 0, 0, time.UTC))
	s := newShopAt(t, fast.now)
	slow := s.secondServer(t, func() time.Time { return fast.now().Add(-time.Hour) })
	servers := []*shop{s, slow}
	together(20, func(i int) {
		for j := range 5 {
			servers[(i+j)%2].take(t, s.input())
		}
	})
	s.wantOneTo(t, 100)
	s.healthy(t)

	// The slow one may be asked for the day that the series has reached, though by its own clock
	// that is tomorrow.
	in := slow.input()
	in.IssueDate = date(t, "2026-05-01")
	slow.take(t, in)
	s.healthy(t)
}
