package sqlc

import "countersign/internal/domain"

// Total is the sum of the invoice's lines, rounded.
func (i *Invoice) Total() domain.Money {
	return domain.Money{AmountMinor: i.TotalMinor, Currency: i.Currency}
}

// AmountDue is what is left to pay.
func (i *Invoice) AmountDue() domain.Money {
	if i.Status.Owes() {
		return i.Total()
	}
	return domain.Money{Currency: i.Currency}
}
