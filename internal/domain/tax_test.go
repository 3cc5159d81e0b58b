package domain

import (
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func rate(t testing.TB, s string) *Decimal {
	t.Helper()
	var d Decimal
	if err := d.UnmarshalGQL(s); err != nil {
		t.Fatal(err)
	}
	return &d
}

// The tax of a line, on top of its amount and within it: rounded once, half to even.
func TestTaxOfALine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		amount    Cents
		rate      string
		treatment TaxTreatment
		want      LineAmounts
	}{
		{10000, "20", TaxExclusive, LineAmounts{10000, 2000, 12000}},
		{12000, "20", TaxInclusive, LineAmounts{10000, 2000, 12000}},
		{10000, "5.5", TaxExclusive, LineAmounts{10000, 550, 10550}},
		{9999, "5.5", TaxInclusive, LineAmounts{9478, 521, 9999}}, // 521.27…
		{10, "25", TaxExclusive, LineAmounts{10, 2, 12}},          // 2.5 is 2
		{14, "25", TaxExclusive, LineAmounts{14, 4, 18}},          // 3.5 is 4
		{-10, "25", TaxExclusive, LineAmounts{-10, -2, -12}},      // and so below zero
		{-14, "25", TaxExclusive, LineAmounts{-14, -4, -18}},
		{3, "100", TaxInclusive, LineAmounts{1, 2, 3}}, // 1.5 is 2
		{1, "100", TaxInclusive, LineAmounts{1, 0, 1}}, // 0.5 is 0
		{100, "0", TaxExclusive, LineAmounts{100, 0, 100}},
		{0, "20", TaxInclusive, LineAmounts{}},
		{math.MaxInt64, "0.000000000001", TaxInclusive, LineAmounts{9223372036854683573, 92234, math.MaxInt64}},
		{math.MinInt64, "100", TaxInclusive, LineAmounts{-4611686018427387904, -4611686018427387904, math.MinInt64}},
	} {
		got, err := Split(c.amount, rate(t, c.rate), c.treatment)
		if err != nil || got != c.want {
			t.Errorf("%d at %s %s: %+v (%v), want %+v", c.amount, c.rate, c.treatment, got, err, c.want)
		}
	}
	if got, err := Split(7, nil, ""); err != nil || got != (LineAmounts{7, 0, 7}) {
		t.Errorf("without a rate: %+v (%v)", got, err)
	}
	if _, err := Split(math.MaxInt64, rate(t, "20"), TaxExclusive); code(err) != CodeAmountOverflow {
		t.Errorf("a gross of more than 64 bits: %v", err)
	}
}

// A line that no invoice could hold is refused by its path.
func TestTaxOfTheInput(t *testing.T) {
	t.Parallel()
	inclusive := TaxInclusive
	for _, c := range []struct {
		rate      *Decimal
		treatment *TaxTreatment
		want      string
	}{
		{rate: rate(t, "100"), treatment: &inclusive},
		{rate: rate(t, "100.000000000001"), want: "BAD_INPUT input.lines.0.taxRate"},
		{rate: rate(t, "-0.5"), want: "BAD_INPUT input.lines.0.taxRate"},
		{treatment: &inclusive, want: "BAD_INPUT input.lines.0.taxTreatment"},
	} {
		_, err := TotalOfLines([]InvoiceLineInput{{Description: "x", Quantity: 1, UnitAmountMinor: 100, TaxRate: c.rate, TaxTreatment: c.treatment}})
		got := ""
		if err != nil {
			got = string(code(err)) + " " + path(err)
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c, got, c.want)
		}
	}
}

// Any lines: net and tax sum to the total, the tax of each is the exact one to within half a minor
// unit, and what is priced with its tax comes back to the net it was made of, within the declared
// rounding.
func TestLinesSumToTheTotal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var lines []InvoiceLineInput
		for range rapid.IntRange(1, 6).Draw(t, "lines") {
			line := InvoiceLineInput{
				Description: "Chess set", Quantity: rapid.Int32Range(1, 1000).Draw(t, "quantity"),
				UnitAmountMinor: Cents(rapid.Int64Range(-1_000_000, 100_000_000).Draw(t, "amount")),
			}
			if rapid.Bool().Draw(t, "taxed") {
				r := DecimalOf(rapid.Int64Range(0, 100_000_000).Draw(t, "rate"))
				r.Exponent = -6
				treatment := rapid.SampledFrom([]TaxTreatment{TaxExclusive, TaxInclusive}).Draw(t, "treatment")
				line.TaxRate, line.TaxTreatment = &r, &treatment
			}
			lines = append(lines, line)
		}
		sum, err := TotalOfLines(lines)
		if code(err) == CodeNegativeTotal {
			return
		}
		var net, tax, gross Cents
		for i, line := range sum.Lines {
			if line.Net+line.Tax != line.Gross {
				t.Fatalf("line %d: %+v", i, line)
			}
			net, tax, gross = net+line.Net, tax+line.Tax, gross+line.Gross
			wantHalfAUnit(t, lines[i], line)
			if r := lines[i].TaxRate; r != nil { // the net, priced with its tax, holds the tax within one minor unit
				back, err := Split(line.Gross, r, TaxInclusive)
				if d := back.Tax - line.Tax; err != nil || d < -1 || d > 1 {
					t.Fatalf("%+v at %s holds %d of tax (%v)", line, r, back.Tax, err)
				}
			}
		}
		if err != nil || sum.Total != gross || sum.Tax != tax || sum.Total-sum.Tax != net {
			t.Fatalf("%+v (%v): the lines sum to %d with %d of tax", sum, err, gross, tax)
		}
	})
}

// wantHalfAUnit is the declared rounding as the database checks it: 2 |tax × base - amount × rate| <= base.
func wantHalfAUnit(t *rapid.T, in InvoiceLineInput, line LineAmounts) {
	if in.TaxRate == nil {
		if line.Tax != 0 {
			t.Fatalf("%+v has a tax without a rate", line)
		}
		return
	}
	base, amount := big.NewRat(100, 1), line.Net
	r, _ := new(big.Rat).SetString(in.TaxRate.Text('f'))
	if in.Treatment() == TaxInclusive {
		base, amount = base.Add(base, r), line.Gross
	}
	off := new(big.Rat).Mul(big.NewRat(int64(line.Tax), 1), base)
	off.Sub(off, r.Mul(r, big.NewRat(int64(amount), 1))).Abs(off)
	if off.Mul(off, big.NewRat(2, 1)).Cmp(base) > 0 {
		t.Fatalf("%+v at %s is off by more than half a minor unit", line, in.TaxRate)
	}
}

// A line without tax has the canonical form it had before there was tax: old keys still name their
// input.
func TestCanonicalFormOfALineWithoutTaxStays(t *testing.T) {
	t.Parallel()
	line := InvoiceLineInput{Description: "x", Quantity: 1, UnitAmountMinor: 2}
	if got, err := json.Marshal(line); err != nil || string(got) != `{"description":"x","quantity":1,"unitAmountMinor":2}` {
		t.Errorf("%s (%v)", got, err)
	}
	line.TaxRate = rate(t, "20.0")
	if got, err := json.Marshal(line); err != nil || !strings.Contains(string(got), `,"taxRate":"20"`) {
		t.Errorf("%s (%v)", got, err)
	}
}
