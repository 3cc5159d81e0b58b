package domain

import (
	"encoding/json"
	"io"
	"regexp"

	"github.com/cockroachdb/apd/v3"
)

// Decimal is an exact decimal. It is a string on the wire and a numeric in the database.
type Decimal struct{ apd.Decimal }

// exact computes without rounding for any product or sum this server can meet: a 19-digit
// quantity times a unit price of at most 30 digits.
var exact = apd.BaseContext.WithPrecision(100)

// DecimalOf is an integer amount as a Decimal.
func DecimalOf[T ~int64](n T) Decimal { return Decimal{*apd.New(int64(n), 0)} }

// decimalSyntax has no exponent and no NaN: an amount is written out.
var decimalSyntax = regexp.MustCompile(`^-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,12})?$`)

// MarshalGQL prints the decimal without an exponent.
func (d Decimal) MarshalGQL(w io.Writer) { writeQuoted(w, d.Text('f')) }

// UnmarshalGQL reads a string of at most 18 digits and 12 decimal places. Zero has no sign.
func (d *Decimal) UnmarshalGQL(v any) error {
	s, ok := v.(string)
	if ok && decimalSyntax.MatchString(s) {
		if _, _, err := d.SetString(s); err != nil || !d.Negative || !d.IsZero() {
			return err
		}
	}
	return BadInput("a Decimal is a string of at most 18 digits and 12 decimal places, such as \"0.077\"")
}

// MarshalJSON prints the decimal for an operation's canonical input, in its one shortest form: 0.50 is
// 0.5. (apd's own marshalling goes by pointer, and would leave the value out.)
func (d Decimal) MarshalJSON() ([]byte, error) {
	var shortest apd.Decimal
	shortest.Reduce(&d.Decimal)
	return json.Marshal(shortest.Text('f'))
}

// Plus is d + e, exactly.
func (d Decimal) Plus(e Decimal) (sum Decimal, err error) {
	_, err = exact.Add(&sum.Decimal, &d.Decimal, &e.Decimal)
	return sum, err
}

// Minus is d - e, exactly.
func (d Decimal) Minus(e Decimal) (difference Decimal, err error) {
	_, err = exact.Sub(&difference.Decimal, &d.Decimal, &e.Decimal)
	return difference, err
}

// Times is d × n, exactly.
func (d Decimal) Times(n int64) (product Decimal, err error) {
	_, err = exact.Mul(&product.Decimal, &d.Decimal, apd.New(n, 0))
	return product, err
}

// Cents rounds d to whole minor units, half to even, or is an AMOUNT_OVERFLOW.
func (d Decimal) Cents() (Cents, error) {
	var whole apd.Decimal
	if _, err := halfEven.Quantize(&whole, &d.Decimal, 0); err != nil {
		return 0, overflow().Because(err)
	}
	n, err := whole.Int64()
	if err != nil {
		return 0, overflow().Because(err)
	}
	return Cents(n), nil
}

// halfEven is the one rounding of the product: 2.5 is 2, 3.5 is 4, so that roundings do not all
// lean the same way.
var halfEven = func() *apd.Context {
	c := exact.WithPrecision(100)
	c.Rounding = apd.RoundHalfEven
	return c
}()

// LessThanOne says whether d is below one minor unit.
func (d Decimal) LessThanOne() bool { return d.Cmp(apd.New(1, 0)) < 0 }
