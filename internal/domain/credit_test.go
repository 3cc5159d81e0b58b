package domain

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Exact amounts in whole minor units sum to the rounded sum, whatever each would round to.
func TestWholeLines(t *testing.T) {
	t.Parallel()
	var exact []Decimal
	for range 10 {
		exact = append(exact, *rate(t, "0.4"))
	}
	whole, err := WholeLines(exact)
	if want := []Cents{0, 1, 0, 1, 0, 0, 1, 0, 1, 0}; err != nil || !slices.Equal(whole, want) {
		t.Errorf("ten times 0.4 is %v (%v), want %v", whole, err, want)
	}
}

// However an invoice is credited, in however many steps, by amounts or by lines: no line is credited
// for more than it was, the shares sum to what was asked, the tax of each line comes back exactly, and
// each share's tax is within two minor units of its own: what the database checks.
func TestCreditsSumToTheInvoice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var lines []Creditable
		var total Cents
		for range rapid.IntRange(1, 6).Draw(t, "lines") {
			r := DecimalOf(rapid.Int64Range(0, 100).Draw(t, "rate"))
			amounts, err := Split(Cents(rapid.Int64Range(-300, 3000).Draw(t, "amount")), &r, rapid.SampledFrom([]TaxTreatment{TaxExclusive, TaxInclusive}).Draw(t, "treatment"))
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, Creditable{Gross: amounts.Gross, Tax: amounts.Tax})
			total += amounts.Gross
		}
		if total < 1 {
			return
		}
		for left := total; left > 0; {
			amount := Cents(rapid.Int64Range(1, int64(left)).Draw(t, "credit"))
			shares := Apportion(amount, lines)
			var sum Cents
			for i, share := range shares {
				line := &lines[i]
				if l := line.Left(); l >= 0 && (share < 0 || share > l) || l < 0 && (share > 0 || share < l) {
					t.Fatalf("%d of %+v", share, line)
				}
				tax := line.TaxShare(share)
				if off := int64(tax)*int64(line.Gross) - int64(line.Tax)*int64(share); line.Gross != 0 && (off > abs(line.Gross) || off < -abs(line.Gross)) {
					t.Fatalf("%d of %+v has %d of tax", share, line, tax)
				}
				line.CreditedGross, line.CreditedTax, sum = line.CreditedGross+share, line.CreditedTax+tax, sum+share
			}
			if sum != amount {
				t.Fatalf("%v sum to %d, want %d", shares, sum, amount)
			}
			left -= amount
		}
		for _, line := range lines {
			if line.CreditedGross != line.Gross || line.CreditedTax != line.Tax {
				t.Fatalf("all is credited, and %+v", line)
			}
		}
	})
}

// An amount to credit is of its line's sign, whatever is left of the line.
func TestCheckAmountOfALine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		gross, amount Cents
		says          string
	}{
		{100, 1, ""}, {100, 101, ""}, {100, 0, "at least 1"}, {100, -1, "at least 1"},
		{-100, -1, ""}, {-100, -101, ""}, {-100, 0, "at most -1"}, {-100, 1, "at most -1"},
		{0, 1, ""}, {0, 0, "at least 1"}, {0, -1, "at least 1"},
	} {
		err := Creditable{Gross: c.gross, CreditedGross: c.gross}.CheckAmount(Input("x"), c.amount)
		if c.says == "" && err != nil || c.says != "" && (code(err) != CodeBadInput || path(err) != "input.x" || !strings.HasSuffix(err.Error(), c.says)) {
			t.Errorf("%d of %d: %v, want %q", c.amount, c.gross, err, c.says)
		}
	}
}

// A credit note is dated by now; by its invoice's day where that is yet to begin in the zone of its series, and
// no other day is asked for; and by nothing before it.
func TestCreditMoment(t *testing.T) {
	t.Parallel()
	now := time.Date(2027, 3, 31, 20, 0, 0, 0, time.UTC)
	day := func(n int) *Date { d := NewDate(2027, time.March, n); return &d }
	at := func(day, hour int) time.Time { return time.Date(2027, 3, day, hour, 0, 0, 0, time.UTC) }
	for _, c := range []struct {
		name      string
		requested *Date
		invoiced  int
		zone      string
		want      time.Time
		code      Code
	}{
		{name: "an invoice of yesterday", invoiced: 30, zone: "UTC", want: now},
		{name: "an invoice of today", invoiced: 31, zone: "UTC", want: now},
		{name: "an invoice of tomorrow", invoiced: 32, zone: "UTC", want: at(32, 0)},
		{name: "an invoice of tomorrow, elsewhere today", invoiced: 32, zone: "Asia/Kolkata", want: now},
		{name: "an invoice of tomorrow, in the west", invoiced: 32, zone: "America/New_York", want: at(32, 4)},
		{name: "an invoice of the day after tomorrow, as far apart as zones are", invoiced: 33, zone: "Etc/GMT+12", want: at(33, 12)},
		{name: "its own day is asked for", requested: day(32), invoiced: 32, zone: "UTC", want: at(32, 0)},
		{name: "its own day in another location is asked for", requested: &Date{day(32).In(time.FixedZone("", 0))}, invoiced: 32, zone: "UTC", want: at(32, 0)},
		{name: "a later day is asked for", requested: day(33), invoiced: 32, zone: "UTC", want: now},
		{name: "the day before is asked for", requested: day(31), invoiced: 32, zone: "UTC", code: CodeBadInput},
		{name: "a day long past is asked for", requested: day(1), invoiced: 30, zone: "UTC", code: CodeBadInput},
		{name: "a day past is asked for", requested: day(30), invoiced: 30, zone: "UTC", want: now},
	} {
		got, err := CreditMoment(c.requested, *day(c.invoiced), now, zone(t, c.zone))
		if code(err) != c.code || c.code == "" && (err != nil || !got.Equal(c.want)) {
			t.Errorf("%s: %s (%v), want %s %s", c.name, got, err, c.want, c.code)
		}
		if c.code != "" && (path(err) != "input.issueDate" || !strings.Contains(err.Error(), "that of the invoice, "+day(c.invoiced).String())) {
			t.Errorf("%s: %v, about %s", c.name, err, path(err))
		}
	}
}

func abs(c Cents) int64 { return max(int64(c), -int64(c)) }

// A payment is of what is due, or of a part of it where that may be.
func TestCheckPayment(t *testing.T) {
	t.Parallel()
	eur := func(c Cents) Money { return Money{c, "EUR"} }
	for _, c := range []struct {
		amount, due Money
		whole, ok   bool
	}{
		{eur(10), eur(10), false, true}, {eur(10), eur(10), true, true},
		{eur(9), eur(10), false, true}, {eur(9), eur(10), true, false},
		{eur(11), eur(10), false, false}, {eur(0), eur(10), false, false}, {eur(-1), eur(10), false, false},
		{eur(0), eur(0), false, true}, {eur(-1), eur(0), false, false},
		{Money{10, "CHF"}, eur(10), false, false}, {Money{9, "CHF"}, eur(10), false, false},
	} {
		if err := CheckPayment(c.amount, c.due, c.whole); (err == nil) != c.ok || err != nil && code(err) != CodeAmountMismatch {
			t.Errorf("%v of %v, whole %t: %v", c.amount, c.due, c.whole, err)
		}
	}
}
