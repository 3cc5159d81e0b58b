package domain

import (
	"fmt"
	"io"
	"math"
	"math/bits"
	"strconv"

	"github.com/bojanz/currency"
)

// Cents is an amount of money in minor units of a currency kept beside it (EUR: cents, JPY: yen,
// KWD: fils). On the wire it is a BigInt: a string of digits.
type Cents int64

// Add is c + d, or an AMOUNT_OVERFLOW.
func (c Cents) Add(d Cents) (Cents, error) {
	sum := c + d
	if (c > 0 && d > 0 && sum < 0) || (c < 0 && d < 0 && sum >= 0) {
		return 0, overflow()
	}
	return sum, nil
}

// Times is c × n, or an AMOUNT_OVERFLOW.
func (c Cents) Times(n int64) (Cents, error) {
	hi, lo := bits.Mul64(magnitude(int64(c)), magnitude(n))
	negative := (c < 0) != (n < 0)
	switch {
	case hi != 0 || lo > 1<<63, lo == 1<<63 && !negative:
		return 0, overflow()
	case negative:
		return Cents(-lo), nil //nolint:gosec // two's complement: 1<<63 is its own negative
	}
	return Cents(lo), nil
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

func overflow() *Refusal {
	return Refuse(CodeAmountOverflow, nil, "the amount is past %d minor units", int64(math.MaxInt64))
}

// MarshalGQL prints the amount as a BigInt.
func (c Cents) MarshalGQL(w io.Writer) { writeQuoted(w, strconv.FormatInt(int64(c), 10)) }

// UnmarshalGQL reads a BigInt.
func (c *Cents) UnmarshalGQL(v any) error {
	n, err := ParseInt64(v)
	*c = Cents(n)
	return err
}

// CurrencyCode is an ISO 4217 code that the currency library knows.
type CurrencyCode string

// ParseCurrencyCode refuses what is no ISO 4217 code, lower case included.
func ParseCurrencyCode(s string) (CurrencyCode, error) {
	if s == "" || !currency.IsValid(s) { // the library takes "" for an amount without a currency
		return "", BadInput("not an ISO 4217 currency code")
	}
	return CurrencyCode(s), nil
}

// MarshalGQL prints the code.
func (c CurrencyCode) MarshalGQL(w io.Writer) { writeQuoted(w, string(c)) }

// UnmarshalGQL reads a code.
func (c *CurrencyCode) UnmarshalGQL(v any) (err error) {
	s, ok := v.(string)
	if !ok {
		return BadInput("a currency code is a string")
	}
	*c, err = ParseCurrencyCode(s)
	return err
}

// Money is an amount with its currency.
type Money struct {
	AmountMinor Cents
	Currency    CurrencyCode
}

// formatter prints amounts for people who read English; clients that want another locale format
// amountMinor themselves.
var formatter = currency.NewFormatter(currency.NewLocale("en"))

// Formatted is the amount as people read it: "€1,234.50", "¥500", "KWD 18.600".
func (m Money) Formatted() string {
	amount, err := currency.NewAmountFromInt64(int64(m.AmountMinor), string(m.Currency))
	if err != nil {
		return fmt.Sprintf("%d %s", m.AmountMinor, m.Currency)
	}
	return formatter.Format(amount)
}
