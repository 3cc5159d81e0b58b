package domain

import (
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"
)

// Amounts are added and multiplied as whole numbers without end would be, or refused where the
// result has more than 64 bits: never wrapped, and never refused without need. Every pair of edges
// is tried.
func TestAmountsAtTheEdges(t *testing.T) {
	t.Parallel()
	edges := []int64{0, 1, 2, 3, math.MaxInt32, 1 << 31, 1 << 32, 3037000499, 3037000500, 1 << 53, 1 << 62, math.MaxInt64 - 1, math.MaxInt64, math.MinInt64}
	for _, a := range edges {
		for _, b := range edges {
			checkExact(t, a, b)
			checkExact(t, -a, b)
			checkExact(t, a, -b)
			checkExact(t, -a, -b)
		}
	}
}

// checkExact compares sum and product with those of whole numbers without end.
func checkExact(t interface {
	Errorf(format string, args ...any)
}, a, b int64) {
	for name, c := range map[string]struct {
		want *big.Int
		got  func() (Cents, error)
	}{
		"sum":     {new(big.Int).Add(big.NewInt(a), big.NewInt(b)), func() (Cents, error) { return Cents(a).Add(Cents(b)) }},
		"product": {new(big.Int).Mul(big.NewInt(a), big.NewInt(b)), func() (Cents, error) { return Cents(a).Times(b) }},
	} {
		got, err := c.got()
		switch {
		case c.want.IsInt64() && (err != nil || int64(got) != c.want.Int64()):
			t.Errorf("the %s of %d and %d is %d (%v), want %s", name, a, b, got, err, c.want)
		case !c.want.IsInt64() && (code(err) != CodeAmountOverflow || got != 0):
			t.Errorf("the %s of %d and %d is %d (%v), want AMOUNT_OVERFLOW: it is %s", name, a, b, got, err, c.want)
		}
	}
}

// Case 26 of the field, as far as an invoice's lines go: sums past what a float or 32 bits can hold
// are exact, as strings on the wire; past 64 bits they are refused, never wrapped. (A quantity is
// an Int: 2147483648 is refused by the wire's own scalar, see graph/scalar.)
func TestCase26AmountsAreExactOrRefused(t *testing.T) {
	t.Parallel()
	line := func(quantity int32, unit Cents) InvoiceLineInput {
		return InvoiceLineInput{Description: "Chess set", Quantity: quantity, UnitAmountMinor: unit}
	}
	for _, c := range []struct {
		name  string
		lines []InvoiceLineInput
		total string // on the wire; "" is an overflow
		path  string
	}{
		{name: "9999999999 × 3", lines: []InvoiceLineInput{line(3, 9_999_999_999)}, total: `"29999999997"`},
		{name: "2^53 + 1", lines: []InvoiceLineInput{line(1, 1<<53+1)}, total: `"9007199254740993"`},
		{name: "2^53 and 1", lines: []InvoiceLineInput{line(1, 1<<53), line(1, 1)}, total: `"9007199254740993"`},
		{name: "9·10^18 × 2", lines: []InvoiceLineInput{line(1, 1), line(2, 9_000_000_000_000_000_000)}, path: "input.lines.1.unitAmountMinor"},
		{name: "9·10^18 twice", lines: []InvoiceLineInput{line(1, 9_000_000_000_000_000_000), line(1, 9_000_000_000_000_000_000)}, path: "input.lines.1.unitAmountMinor"},
		{name: "the largest", lines: []InvoiceLineInput{line(1, math.MaxInt64)}, total: `"9223372036854775807"`},
		{name: "one past the largest", lines: []InvoiceLineInput{line(1, math.MaxInt64), line(1, 1)}, path: "input.lines.1.unitAmountMinor"},
		{name: "the largest quantity", lines: []InvoiceLineInput{line(math.MaxInt32, 4_294_967_298)}, total: `"9223372036854775806"`},
		{name: "the largest quantity and more", lines: []InvoiceLineInput{line(math.MaxInt32, 4_294_967_299)}, path: "input.lines.0.unitAmountMinor"},
		{name: "a discount of more than 64 bits", lines: []InvoiceLineInput{line(2, math.MinInt64)}, path: "input.lines.0.unitAmountMinor"},
	} {
		sum, err := TotalOfLines(c.lines)
		total := sum.Total
		switch {
		case c.total != "" && (err != nil || wire(total) != c.total):
			t.Errorf("%s: %s (%v), want %s", c.name, wire(total), err, c.total)
		case c.total == "" && (len(UserErrors(err)) != 1 || UserErrors(err)[0].GetCode() != CodeAmountOverflow || path(err) != c.path || total != 0):
			t.Errorf("%s: %d (%v at %s), want AMOUNT_OVERFLOW at %s", c.name, total, err, path(err), c.path)
		}
	}
	// What a client sends comes back as it was sent, however it spells a number.
	for _, in := range []any{"9007199254740993", json.Number("9007199254740993"), int64(9007199254740993)} {
		var c Cents
		if err := c.UnmarshalGQL(in); err != nil || wire(c) != `"9007199254740993"` {
			t.Errorf("%T %v is read as %s (%v)", in, in, wire(c), err)
		}
	}
}

// Lines that cannot be billed are refused before anything is written, each by its own path.
func TestTotalOfLines(t *testing.T) {
	t.Parallel()
	good := InvoiceLineInput{Description: "Chess set", Quantity: 2, UnitAmountMinor: 4950}
	with := func(change func(l *InvoiceLineInput)) InvoiceLineInput { l := good; change(&l); return l }
	quantity := func(n int32) InvoiceLineInput { return with(func(l *InvoiceLineInput) { l.Quantity = n }) }
	describe := func(s string) InvoiceLineInput { return with(func(l *InvoiceLineInput) { l.Description = s }) }
	discount := with(func(l *InvoiceLineInput) { l.UnitAmountMinor = -4950 })
	worse := with(func(l *InvoiceLineInput) { l.UnitAmountMinor = -4951 })
	many := make([]InvoiceLineInput, MaxInvoiceLines+1)
	for i := range many {
		many[i] = good
	}
	for _, c := range []struct {
		name  string
		lines []InvoiceLineInput
		total Cents
		fault []string // code and path of each error
	}{
		{name: "one line", lines: []InvoiceLineInput{good}, total: 9900},
		{name: "a discount", lines: []InvoiceLineInput{good, good, discount}, total: 9900},
		{name: "a discount of everything", lines: []InvoiceLineInput{good, discount}, total: 0},
		{name: "a discount first", lines: []InvoiceLineInput{discount, good}, total: 0},
		{name: "a discount of more", lines: []InvoiceLineInput{good, worse}, fault: []string{"NEGATIVE_TOTAL input.lines"}},
		{name: "one less than nothing", lines: []InvoiceLineInput{{Description: "Discount", Quantity: 1, UnitAmountMinor: -1}}, fault: []string{"NEGATIVE_TOTAL input.lines"}},
		{name: "as many lines as may be", lines: many[1:], total: 9900 * MaxInvoiceLines},
		{name: "one more", lines: many, fault: []string{"BAD_INPUT input.lines"}},
		{name: "no lines", fault: []string{"BAD_INPUT input.lines"}},
		{name: "quantities 0 and -5", lines: []InvoiceLineInput{quantity(0), good, quantity(-5)},
			fault: []string{"INVALID_QUANTITY input.lines.0.quantity", "INVALID_QUANTITY input.lines.2.quantity"}},
		{name: "two kinds of fault", lines: []InvoiceLineInput{quantity(0), with(func(l *InvoiceLineInput) { l.UnitAmountMinor = math.MaxInt64 })},
			fault: []string{"INVALID_QUANTITY input.lines.0.quantity", "AMOUNT_OVERFLOW input.lines.1.unitAmountMinor"}},
		{name: "a blank description", lines: []InvoiceLineInput{good, describe(" \t")}, fault: []string{"BAD_INPUT input.lines.1.description"}},
		{name: "500 characters", lines: []InvoiceLineInput{describe(strings.Repeat("€", 500))}, total: 9900},
		{name: "501 characters", lines: []InvoiceLineInput{describe(strings.Repeat("€", 501))}, fault: []string{"BAD_INPUT input.lines.0.description"}},
	} {
		sum, err := TotalOfLines(c.lines)
		total := sum.Total
		var faults []string
		for _, e := range UserErrors(err) {
			faults = append(faults, string(e.GetCode())+" "+strings.Join(e.GetPath(), "."))
		}
		if err != nil && faults == nil { // not one that a payload answers
			faults = []string{string(code(err)) + " " + path(err)}
		}
		if total != c.total || strings.Join(faults, ", ") != strings.Join(c.fault, ", ") {
			t.Errorf("%s: %d %v, want %d %v", c.name, total, faults, c.total, c.fault)
		}
	}
}

// People read an amount with as many decimals as its currency has, whatever its size.
func TestFormatted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		minor    Cents
		currency CurrencyCode
		want     string
	}{
		{123450, "EUR", "€1,234.50"}, {-123450, "EUR", "-€1,234.50"}, {0, "EUR", "€0.00"}, {5, "EUR", "€0.05"},
		{500, "JPY", "¥500"}, {1234567, "JPY", "¥1,234,567"},
		{18600, "KWD", "KWD 18.600"}, {1, "KWD", "KWD 0.001"},
		{math.MaxInt64, "EUR", "€92,233,720,368,547,758.07"}, {math.MinInt64, "EUR", "-€92,233,720,368,547,758.08"},
	} {
		got := strings.ReplaceAll(Money{c.minor, c.currency}.Formatted(), "\u00a0", " ")
		if got != c.want {
			t.Errorf("%d %s is formatted %q, want %q", c.minor, c.currency, got, c.want)
		}
	}
}

// A currency is one of ISO 4217, in its one spelling.
func TestCurrencyCodes(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"EUR", "JPY", "KWD", "INR"} {
		var c CurrencyCode
		if err := c.UnmarshalGQL(good); err != nil || wire(c) != `"`+good+`"` {
			t.Errorf("%s is read as %s (%v)", good, c, err)
		}
	}
	for _, bad := range []any{"", "eur", "EURO", "EU", "XYZ", " EUR", "€", nil, 978} {
		var c CurrencyCode
		if err := c.UnmarshalGQL(bad); code(err) != CodeBadInput {
			t.Errorf("%v is read as %s (%v), want BAD_INPUT", bad, c, err)
		}
	}
}
