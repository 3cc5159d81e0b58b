package domain

import (
	"math"
	"testing"
)

func decimal(t *testing.T, s string) (d Decimal) {
	t.Helper()
	if _, _, err := d.SetString(s); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return d
}

// Exact amounts are rounded once, half to even: roundings of many invoices do not all lean the
// same way. What does not fit is refused.
func TestDecimalsRoundHalfToEven(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]Cents{
		"0": 0, "0.4": 0, "0.5": 0, "0.6": 1, "1.5": 2, "2.5": 2, "3.5": 4, "2.50000000000000000001": 3, "2.49999999999999999999": 2,
		"-0.5": 0, "-1.5": -2, "-2.5": -2, "-2.51": -3, "4.466": 4, "4.000": 4, "9223372036854775807": math.MaxInt64, "-9223372036854775808": math.MinInt64,
		"9223372036854775807.4": math.MaxInt64, "9223372036854775806.5": 9223372036854775806,
	} {
		if got, err := decimal(t, in).Cents(); err != nil || got != want {
			t.Errorf("%s is %d (%v), want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"9223372036854775807.5", "-9223372036854775808.6", "9223372036854775808", "1e60"} {
		if got, err := decimal(t, in).Cents(); code(err) != CodeAmountOverflow {
			t.Errorf("%s is %d (%v), want AMOUNT_OVERFLOW", in, got, err)
		}
	}
}

// Sums keep every digit: 58 events of 0.077 cent are 4.466, and a number far below a cent is not
// lost beside one near the end of 64 bits.
func TestDecimalsAddExactly(t *testing.T) {
	t.Parallel()
	sum := func(n int, s string) (d Decimal) {
		for range n {
			var err error
			if d, err = d.Plus(decimal(t, s)); err != nil {
				t.Fatal(err)
			}
		}
		return d
	}
	for _, c := range []struct {
		n       int
		of      string
		want    string
		rounded Cents
	}{{58, "0.077", "4.466", 4}, {10, "0.4", "4.0", 4}, {3, "-0.000000000001", "-0.000000000003", 0}} {
		d := sum(c.n, c.of)
		rounded, err := d.Cents()
		if d.Text('f') != c.want || rounded != c.rounded || err != nil {
			t.Errorf("%d × %s is %s, rounded %d (%v); want %s, %d", c.n, c.of, d.Text('f'), rounded, err, c.want, c.rounded)
		}
	}
	d, err := DecimalOf(Cents(math.MaxInt64)).Plus(decimal(t, "0.000000000001"))
	if err != nil || d.Text('f') != "9223372036854775807.000000000001" {
		t.Errorf("the sum is %s (%v)", d.Text('f'), err)
	}
}

// A Decimal is a string with as many digits as it was sent with, never an exponent.
func TestDecimalsOfTheWire(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"0", "0.077", "-1.50", "999999999999999999.999999999999", "0.000000000001", "1"} {
		var d Decimal
		if err := d.UnmarshalGQL(in); err != nil || wire(d) != `"`+in+`"` {
			t.Errorf("%s is read as %s (%v)", in, wire(d), err)
		}
	}
	if got := wire(decimal(t, "1e20")); got != `"100000000000000000000"` {
		t.Errorf("1e20 is printed %s", got)
	}
	for _, in := range []any{
		"", "1e3", "+1", ".5", "1.", "01", "--1", "NaN", "Infinity", "1,5", " 1", "1000000000000000000", "0.0000000000001", "-0", "-0.00", nil, 1.5, 1,
	} {
		var d Decimal
		if err := d.UnmarshalGQL(in); code(err) != CodeBadInput {
			t.Errorf("%v is read as %s (%v), want BAD_INPUT", in, wire(d), err)
		}
	}
}
