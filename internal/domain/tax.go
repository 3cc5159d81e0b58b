package domain

import (
	"math/big"

	"github.com/cockroachdb/apd/v3"
)

// TaxTreatment is whether a line's tax is on top of its amount or within it.
type TaxTreatment string

// The treatments.
const (
	TaxExclusive TaxTreatment = "EXCLUSIVE"
	TaxInclusive TaxTreatment = "INCLUSIVE"
)

// hundred is a rate of all, in percent.
var hundred = apd.New(100, 0)

// checkTaxRate refuses what is no rate in percent.
func checkTaxRate(path []string, rate Decimal) error {
	if rate.Negative || rate.Cmp(hundred) > 0 {
		return BadInputAt(path, "a tax rate is 0 to 100 percent")
	}
	return nil
}

// TaxOf is the tax of an amount at a rate in percent, in minor units: amount × rate / 100 on top of
// it, or amount × rate / (100 + rate) within it. It is the one declared rounding of tax: half to
// even, once per line.
func TaxOf(amount Cents, rate Decimal, treatment TaxTreatment) (Cents, error) {
	part, whole := ratio(rate)
	if treatment == TaxInclusive {
		whole.Add(whole, part)
	}
	return cents(roundHalfEven(part.Mul(part, big.NewInt(int64(amount))), whole))
}

// ratio is a rate in percent as a fraction of whole numbers.
func ratio(rate Decimal) (part, whole *big.Int) {
	part, whole = new(big.Int).Set(rate.Coeff.MathBigInt()), big.NewInt(100)
	if rate.Negative {
		part.Neg(part)
	}
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(rate.Exponent, -rate.Exponent))), nil)
	if rate.Exponent > 0 {
		part.Mul(part, power)
	} else {
		whole.Mul(whole, power)
	}
	return part, whole
}

// roundHalfEven is num / den as a whole number, for a den above zero.
func roundHalfEven(num, den *big.Int) *big.Int {
	quotient, rest := new(big.Int).QuoRem(new(big.Int).Abs(num), den, new(big.Int))
	if half := rest.Lsh(rest, 1).Cmp(den); half > 0 || half == 0 && quotient.Bit(0) == 1 {
		quotient.Add(quotient, big.NewInt(1))
	}
	if num.Sign() < 0 {
		quotient.Neg(quotient)
	}
	return quotient
}

func cents(n *big.Int) (Cents, error) {
	if !n.IsInt64() {
		return 0, overflow()
	}
	return Cents(n.Int64()), nil
}

// LineAmounts are what a line comes to: Net + Tax is Gross, which is what is to be paid.
type LineAmounts struct{ Net, Tax, Gross Cents }

// Split is a line's amount with its tax; no rate is no tax.
func Split(amount Cents, rate *Decimal, treatment TaxTreatment) (a LineAmounts, err error) {
	if rate == nil {
		return LineAmounts{Net: amount, Gross: amount}, nil
	}
	if a.Tax, err = TaxOf(amount, *rate, treatment); err != nil {
		return a, err
	}
	if treatment == TaxInclusive {
		a.Gross = amount
		a.Net, err = amount.Add(-a.Tax)
		return a, err
	}
	a.Net = amount
	a.Gross, err = amount.Add(a.Tax)
	return a, err
}

// Amounts is the line with its tax, or an AMOUNT_OVERFLOW.
func (l InvoiceLineInput) Amounts() (LineAmounts, error) {
	amount, err := l.Amount()
	if err != nil {
		return LineAmounts{}, err
	}
	return Split(amount, l.TaxRate, l.Treatment())
}

// Treatment is how the line is taxed; EXCLUSIVE where it does not say.
func (l InvoiceLineInput) Treatment() TaxTreatment {
	if l.TaxTreatment == nil {
		return TaxExclusive
	}
	return *l.TaxTreatment
}
