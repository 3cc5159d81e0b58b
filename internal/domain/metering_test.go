package domain

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func month(t *testing.T, s string) Month {
	t.Helper()
	m, err := ParseMonth(s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A month is the customer's: it starts and ends at the first moment of a first day in the
// customer's zone, also where the clocks change on that day.
func TestMonthBounds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ zone, month, starts, ends string }{
		{"UTC", "2026-02", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"},
		{"UTC", "2026-12", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"America/Los_Angeles", "2026-10", "2026-10-01T07:00:00Z", "2026-11-01T07:00:00Z"},
		{"America/Los_Angeles", "2026-11", "2026-11-01T07:00:00Z", "2026-12-01T08:00:00Z"}, // an hour comes twice on its first day
		{"Asia/Kolkata", "2026-06", "2026-05-31T18:30:00Z", "2026-06-30T18:30:00Z"},
		{"Pacific/Kiritimati", "2026-06", "2026-05-31T10:00:00Z", "2026-06-30T10:00:00Z"},
		{"America/Asuncion", "2023-09", "2023-09-01T04:00:00Z", "2023-10-01T04:00:00Z"}, // the midnight at its end is skipped
		{"America/Asuncion", "2023-10", "2023-10-01T04:00:00Z", "2023-11-01T03:00:00Z"},
		{"America/Havana", "2026-11", "2026-11-01T04:00:00Z", "2026-12-01T05:00:00Z"},   // the midnight at its start comes twice
		{"America/St_Johns", "2009-10", "2009-10-01T02:30:00Z", "2009-11-01T02:30:00Z"}, // put back a minute after its end
		{"Pacific/Apia", "2011-12", "2011-12-01T10:00:00Z", "2011-12-31T10:00:00Z"},     // it has thirty days
	} {
		start, end := month(t, c.month).Bounds(zone(t, c.zone))
		if got := [2]string{start.UTC().Format(time.RFC3339Nano), end.UTC().Format(time.RFC3339Nano)}; got != [2]string{c.starts, c.ends} {
			t.Errorf("%s in %s is %s, want %s to %s", c.month, c.zone, got, c.starts, c.ends)
		}
	}
}

// Case 31: usage at 2026-11-01T06:30Z is October's in Los Angeles, and both runs of the hour that
// night which comes twice are November's. Case 38: an event at the first moment of a month is that
// month's alone.
func TestCase31And38WhoseMonthAMomentIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ at, zone, month string }{
		{"2026-11-01T06:30:00Z", "America/Los_Angeles", "2026-10"},
		{"2026-11-01T06:59:59.999999Z", "America/Los_Angeles", "2026-10"},
		{"2026-11-01T07:00:00Z", "America/Los_Angeles", "2026-11"},
		{"2026-11-01T08:30:00Z", "America/Los_Angeles", "2026-11"}, // 01:30, for the first time
		{"2026-11-01T09:30:00Z", "America/Los_Angeles", "2026-11"}, // 01:30, for the second
		{"2026-01-31T23:59:59.999999Z", "UTC", "2026-01"},
		{"2026-02-01T00:00:00Z", "UTC", "2026-02"},
		{"2023-10-01T03:59:59.999999Z", "America/Asuncion", "2023-09"},
		{"2023-10-01T04:00:00Z", "America/Asuncion", "2023-10"},
		{"2009-11-01T02:30:00Z", "America/St_Johns", "2009-11"},
		{"2009-11-01T02:45:00Z", "America/St_Johns", "2009-11"}, // the wall shows 31 October once more
	} {
		at, err := time.Parse(time.RFC3339Nano, c.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := MonthOf(at, zone(t, c.zone)); got.String() != c.month {
			t.Errorf("%s in %s is of %s, want %s", c.at, c.zone, got, c.month)
		}
	}
}

// Months are half-open and leave nothing out: in every zone, whatever its clocks do, a moment is
// within the bounds of its month, and the next month starts where this one ends.
func TestAMomentIsOfExactlyOneMonth(t *testing.T) {
	t.Parallel()
	zones := []string{"UTC", "America/Los_Angeles", "America/Asuncion", "America/Havana", "America/St_Johns", "Asia/Kathmandu",
		"Asia/Amman", "Atlantic/Azores", "Africa/Casablanca", "Pacific/Apia", "Pacific/Kiritimati", "Antarctica/Troll"}
	rapid.Check(t, func(rt *rapid.T) {
		z := zone(t, rapid.SampledFrom(zones).Draw(rt, "zone"))
		near := time.Date(rapid.IntRange(1990, 2040).Draw(rt, "year"), time.Month(rapid.IntRange(1, 12).Draw(rt, "month")), 1, 0, 0, 0, 0, time.UTC)
		at := near.Add(time.Duration(rapid.Int64Range(-int64(36*time.Hour), int64(36*time.Hour)).Draw(rt, "off")))
		m := MonthOf(at, z)
		start, end := m.Bounds(z)
		if at.Before(start) || !at.Before(end) {
			rt.Errorf("%v in %v is of %s, from %v to %v", at, z, m, start, end)
		}
		if next, _ := (Month{Date{m.AddDate(0, 1, 0)}}).Bounds(z); !next.Equal(end) {
			rt.Errorf("%s in %v ends at %v, the next one starts at %v", m, z, end, next)
		}
	})
}

// Where a settlement's value goes, in full: a closed month takes nothing, an open invoice takes all,
// what is waived by an exemption follows the exemption, and what a person has decided, or somebody
// has paid or been asked for, is left alone.
func TestPlaceInFull(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, status := range append([]InvoiceStatus{""}, InvoiceStatuses...) {
		for _, waivedBy := range []string{"", WaivedByExemption, WaivedByHand} {
			for _, numbered := range []bool{false, true} {
				for _, exempt := range []bool{false, true} {
					for _, closed := range []bool{false, true} {
						if (status == InvoiceWaived) != (waivedBy != "") {
							continue // no such invoice
						}
						want := map[string]Placing{
							"/":                PlaceInNewInvoice,
							"OPEN/":            PlaceInInvoice,
							"WAIVED/EXEMPTION": PlaceReinstated,
						}[string(status)+"/"+waivedBy]
						switch {
						case closed || want == "":
							want = PlaceApart
						case want == PlaceReinstated && exempt:
							want = PlaceInWaived
						case want == PlaceReinstated && numbered: // its month was closed: not reached while it is open
							want = PlaceApart
						}
						seen++
						if got := Place(status, waivedBy, numbered, exempt, closed); got != want {
							t.Errorf("invoice %q waived by %q, numbered %t, exempt %t, closed %t: %s, want %s", status, waivedBy, numbered, exempt, closed, got, want)
						}
					}
				}
			}
		}
	}
	if seen != 10*8 {
		t.Errorf("%d cases walked, want 80", seen)
	}
}

// An invoice's total is the sum of its exact lines, rounded once, half to even, however many lines
// came one after another; with the adjustment the sum can be told again to the last fraction.
func TestAddExactIsTheExactSum(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		total, adjustment, sum := Cents(0), Decimal{}, new(big.Rat)
		for range rapid.IntRange(1, 12).Draw(rt, "lines") {
			var price Decimal
			text := fmt.Sprintf("%d.%012d", rapid.Int64Range(0, 9999).Draw(rt, "units"), rapid.OneOf(
				rapid.Int64Range(0, 999999999999), rapid.SampledFrom([]int64{0, 500000000000, 400000000000, 77000000000})).Draw(rt, "fraction"))
			if err := price.UnmarshalGQL(text); err != nil {
				rt.Fatal(err)
			}
			quantity := rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(0, 1<<45)).Draw(rt, "quantity")
			amount, err := price.Times(quantity)
			if err != nil {
				rt.Fatal(err)
			}
			if total, adjustment, err = AddExact(total, adjustment, amount); err != nil {
				rt.Fatal(err)
			}
			exact, _ := new(big.Rat).SetString(text)
			sum.Add(sum, exact.Mul(exact, new(big.Rat).SetInt64(quantity)))
		}
		if want := halfToEven(sum); int64(total) != want {
			rt.Errorf("the total of %s is %d, want %d", sum.FloatString(12), total, want)
		}
		rounding, _ := new(big.Rat).SetString(adjustment.Text('f'))
		if back := new(big.Rat).Sub(new(big.Rat).SetInt64(int64(total)), rounding); back.Cmp(sum) != 0 {
			rt.Errorf("total and adjustment say %s, the lines %s", back.FloatString(12), sum.FloatString(12))
		}
	})
}

// halfToEven rounds what is not negative, by another road than the product's.
func halfToEven(r *big.Rat) int64 {
	whole, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	switch rest.Lsh(rest, 1).Cmp(r.Denom()) {
	case 1:
		whole.Add(whole, big.NewInt(1))
	case 0:
		whole.Add(whole, new(big.Int).And(whole, big.NewInt(1)))
	}
	return whole.Int64()
}

// A total past 64 bits is refused, not wrapped; the last that fits is not.
func TestAddExactAtTheEdge(t *testing.T) {
	t.Parallel()
	var half, more Decimal
	if err := half.UnmarshalGQL("0.5"); err != nil {
		t.Fatal(err)
	}
	if err := more.UnmarshalGQL("0.51"); err != nil {
		t.Fatal(err)
	}
	if total, _, err := AddExact(math.MaxInt64-1, Decimal{}, half); err != nil || total != math.MaxInt64-1 {
		t.Errorf("got %d (%v), want the half to be rounded down to even", total, err)
	}
	if total, _, err := AddExact(math.MaxInt64-1, Decimal{}, more); err != nil || total != math.MaxInt64 {
		t.Errorf("got %d (%v), want the last total that fits", total, err)
	}
	if total, _, err := AddExact(math.MaxInt64, Decimal{}, more); code(err) != CodeAmountOverflow || total != 0 {
		t.Errorf("got %d (%v), want AMOUNT_OVERFLOW", total, err)
	}
}

// The life of an invoice, every state × every move: nothing leaves DELETED, PAID, VOID and ISSUED, a
// draft is finalised or deleted, an open month is finalised, paid, waived or voided, a waive can be
// taken back, and nothing else is ever reopened.
func TestEveryMoveOfAnInvoice(t *testing.T) {
	t.Parallel()
	legal := map[InvoiceStatus][]InvoiceStatus{
		InvoiceDraft:   {InvoicePending, InvoiceDeleted},
		InvoiceOpen:    {InvoicePending, InvoicePaid, InvoiceWaived, InvoiceVoid},
		InvoicePending: {InvoicePaid, InvoiceWaived, InvoiceVoid},
		InvoiceWaived:  {InvoiceOpen, InvoicePending, InvoiceVoid},
	}
	for _, from := range InvoiceStatuses {
		for _, to := range InvoiceStatuses {
			err := from.CheckMove(to)
			if slices.Contains(legal[from], to) != (err == nil) {
				t.Errorf("%s to %s: %v", from, to, err)
			}
			if slices.Contains(to.Sources(), from) != (err == nil) {
				t.Errorf("%s to %s: the guard and the check do not agree", from, to)
			}
			if err != nil && (code(err) != CodeIllegalTransition || path(err) != "input.invoiceId") {
				t.Errorf("%s to %s is refused with %s at %s", from, to, code(err), path(err))
			}
		}
		if want := from == InvoiceOpen || from == InvoicePending; from.Owes() != want {
			t.Errorf("%s owes: %t", from, from.Owes())
		}
		err := from.CheckCreditable()
		if want := from != InvoicePending && from != InvoicePaid; (err != nil) != want {
			t.Errorf("%s is credited: %v", from, err)
		}
		if said, why, _ := strings.Cut(fmt.Sprint(err), ": "); err != nil && (said != fmt.Sprintf("an invoice that is %s cannot be credited", from) || why == "" ||
			code(err) != CodeIllegalTransition || path(err) != "input.invoiceId") {
			t.Errorf("%s is credited: %v (%s at %s)", from, err, code(err), path(err))
		}
	}
}

// A month has one spelling.
func TestMonthsOfTheWire(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"2026-01", "2026-12", "9999-12"} {
		var m Month
		if err := m.UnmarshalGQL(in); err != nil || wire(m) != `"`+in+`"` {
			t.Errorf("%s is read as %s (%v)", in, m, err)
		}
	}
	for _, in := range []any{"2026-13", "2026-00", "2026-1", "26-01", "2026-01-01", "2026", "", nil, 202601} {
		var m Month
		if err := m.UnmarshalGQL(in); code(err) != CodeBadInput {
			t.Errorf("%v is read as %s (%v), want BAD_INPUT", in, m, err)
		}
	}
}
