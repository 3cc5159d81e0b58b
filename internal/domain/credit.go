package domain

import (
	"math/big"
	"slices"
	"time"
)

// Creditable is a line of an invoice in whole minor units, and what its credit notes have taken back
// of it: with its tax, and of its tax. A discount's amounts are negative.
type Creditable struct {
	Gross, Tax                 Cents
	CreditedGross, CreditedTax Cents
}

// Left is what can still be taken back.
func (l Creditable) Left() Cents { return l.Gross - l.CreditedGross }

// TaxShare is the tax within gross of what is left. All shares of a line sum to its tax, however it
// is credited: each is the rounded tax of what is credited with it, less that of before.
func (l Creditable) TaxShare(gross Cents) Cents {
	if l.Gross == 0 {
		return 0
	}
	num := new(big.Int).Mul(big.NewInt(int64(l.Tax)), big.NewInt(int64(l.CreditedGross+gross)))
	den := big.NewInt(int64(l.Gross))
	if den.Sign() < 0 {
		num, den = num.Neg(num), den.Neg(den)
	}
	return Cents(roundHalfEven(num, den).Int64()) - l.CreditedTax // within the line's tax
}

// CheckAmount refuses what is no amount of the line, whatever is left of it: one of the other sign, or none.
func (l Creditable) CheckAmount(path []string, amount Cents) error {
	switch {
	case l.Gross < 0 && amount > -1:
		return BadInputAt(path, "an amount is of its line's sign: of a discount, at most -1")
	case l.Gross >= 0 && amount < 1:
		return BadInputAt(path, "an amount is of its line's sign: at least 1")
	}
	return nil
}

// WholeLines are exact amounts in whole minor units that sum to the rounded sum: each is what its
// addition adds to the rounded sum of those before it.
func WholeLines(exact []Decimal) ([]Cents, error) {
	whole := make([]Cents, len(exact))
	var sum Decimal
	var before Cents
	for i, amount := range exact {
		var err error
		if sum, err = sum.Plus(amount); err != nil {
			return nil, err
		}
		now, err := sum.Cents()
		if err != nil {
			return nil, err
		}
		whole[i], before = now-before, now
	}
	return whole, nil
}

// Apportion splits an amount over what is left of each line, in proportion, by largest remainder:
// the shares sum to the amount, and none is more than what is left. The amount is 1 to the sum of
// what is left.
func Apportion(amount Cents, lines []Creditable) []Cents {
	total := new(big.Int)
	for _, line := range lines {
		total.Add(total, big.NewInt(int64(line.Left())))
	}
	type remainder struct {
		line int
		of   *big.Int
	}
	shares, rest := make([]Cents, len(lines)), amount
	var remainders []remainder
	for i, line := range lines {
		share, of := new(big.Int).DivMod(new(big.Int).Mul(big.NewInt(int64(line.Left())), big.NewInt(int64(amount))), total, new(big.Int))
		shares[i] = Cents(share.Int64())
		rest -= shares[i]
		if of.Sign() > 0 {
			remainders = append(remainders, remainder{i, of})
		}
	}
	slices.SortStableFunc(remainders, func(a, b remainder) int { return b.of.Cmp(a.of) })
	for _, r := range remainders[:rest] {
		shares[r.line]++
	}
	return shares
}

// CreditMoment is the moment by which a credit note is dated and numbered: now, or when the day of its
// invoice begins in the time zone of the note's series. It refuses a day, if one is asked for, that is
// before the invoice's.
//
// A note cannot precede its invoice, whose series may keep the days of a zone further east: there the
// invoice's day has begun, here it is still tomorrow. That one day of the future a note may have. To
// refuse it would be to make a credit wait for hours because of how two series are set up; to take
// today would put the note before its invoice, across a year's end into the books of the year before.
func CreditMoment(requested *Date, invoiced Date, now time.Time, zone *time.Location) (time.Time, error) {
	if requested != nil && requested.Before(invoiced.Time) {
		return now, BadInputAt(Input("issueDate"), "the issue date %s is before that of the invoice, %s: a credit note cannot precede what it credits", requested, invoiced)
	}
	if begins := invoiced.Begin(zone); begins.After(now) && (requested == nil || requested.Equal(invoiced.Time)) {
		return begins, nil
	}
	return now, nil
}

// CreditTooLargeError refuses a credit of more than is left.
type CreditTooLargeError struct {
	Refusal
	CreditLeft Money
}

// CreditTooLarge says what is left to credit.
func CreditTooLarge(path []string, left Money) error {
	return &CreditTooLargeError{
		*Refuse(CodeCreditTooLarge, path, "%d minor units of %s are left to credit", left.AmountMinor, left.Currency), left,
	}
}

// AmountMismatchError refuses a payment that is not of what is due.
type AmountMismatchError struct {
	Refusal
	AmountDue Money
}

// CheckPayment refuses a payment of another currency or of more than is due; where it must be whole,
// of less too. A payment is of at least 1, but where nothing is due.
func CheckPayment(amount, due Money, whole bool) error {
	if amount.Currency == due.Currency && (amount == due || !whole && amount.AmountMinor >= 1 && amount.AmountMinor < due.AmountMinor) {
		return nil
	}
	return &AmountMismatchError{
		*Refuse(CodeAmountMismatch, Input("amountMinor"), "%d minor units of %s are due", due.AmountMinor, due.Currency), due,
	}
}
