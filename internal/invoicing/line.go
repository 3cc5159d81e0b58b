package invoicing

import (
	"cmp"
	"slices"

	"countersign/internal/domain"
	"countersign/sqlc"
)

// Line is a line with the currency of its invoice.
type Line struct {
	*sqlc.InvoiceLine
	Currency domain.CurrencyCode
}

// Amount is the line's exact amount in whole minor units: with its tax where that is within it.
func (l *Line) Amount() (domain.Money, error) {
	amount, err := l.ExactAmount.Cents()
	return domain.Money{AmountMinor: amount, Currency: l.Currency}, err
}

// inclusive says whether the line's tax is within its amount.
func (l *Line) inclusive() bool {
	return l.TaxTreatment != nil && *l.TaxTreatment == domain.TaxInclusive
}

// exactNet is the line without its tax, exactly.
func (l *Line) exactNet() (domain.Decimal, error) {
	if l.inclusive() {
		return l.ExactAmount.Minus(domain.DecimalOf(l.TaxMinor))
	}
	return l.ExactAmount, nil
}

// Net is the line without its tax, in whole minor units.
func (l *Line) Net() (domain.Money, error) {
	exact, err := l.exactNet()
	if err != nil {
		return domain.Money{}, err
	}
	net, err := exact.Cents()
	return domain.Money{AmountMinor: net, Currency: l.Currency}, err
}

// Tax is the line's.
func (l *Line) Tax() domain.Money { return domain.Money{AmountMinor: l.TaxMinor, Currency: l.Currency} }

// Gross is the line with its tax.
func (l *Line) Gross() (domain.Money, error) {
	gross, err := l.Net()
	if err == nil {
		gross.AmountMinor, err = gross.AmountMinor.Add(l.TaxMinor)
	}
	return gross, err
}

// TaxSubtotal is what an invoice charges at one rate; no rate is no tax.
type TaxSubtotal struct {
	Rate     *domain.Decimal
	Net, Tax domain.Money
}

// Subtotals are an invoice's lines by their rates: what is not taxed first, then by the rate.
func Subtotals(lines []*Line) ([]*TaxSubtotal, error) {
	type sum struct {
		rate *domain.Decimal
		net  domain.Decimal
		tax  domain.Cents
	}
	var sums []*sum
	for _, line := range lines {
		i := slices.IndexFunc(sums, func(s *sum) bool { return sameRate(s.rate, line.TaxRate) })
		if i < 0 {
			i, sums = len(sums), append(sums, &sum{rate: line.TaxRate})
		}
		net, err := line.exactNet()
		if err == nil {
			sums[i].net, err = sums[i].net.Plus(net)
		}
		if err == nil {
			sums[i].tax, err = sums[i].tax.Add(line.TaxMinor)
		}
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(sums, func(a, b *sum) int { return compareRates(a.rate, b.rate) })
	out := make([]*TaxSubtotal, len(sums))
	for i, s := range sums {
		net, err := s.net.Cents()
		if err != nil {
			return nil, err
		}
		currency := lines[0].Currency
		out[i] = &TaxSubtotal{s.rate, domain.Money{AmountMinor: net, Currency: currency}, domain.Money{AmountMinor: s.tax, Currency: currency}}
	}
	return out, nil
}

func sameRate(a, b *domain.Decimal) bool { return compareRates(a, b) == 0 }

func compareRates(a, b *domain.Decimal) int {
	if a == nil || b == nil {
		present := map[bool]int{true: 1}
		return cmp.Compare(present[a != nil], present[b != nil])
	}
	return a.Cmp(&b.Decimal)
}
