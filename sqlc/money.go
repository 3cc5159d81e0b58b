package sqlc

import (
	"time"

	"countersign/internal/domain"
)

// Total is the sum of the invoice's lines, rounded.
func (i *Invoice) Total() domain.Money {
	return domain.Money{AmountMinor: i.TotalMinor, Currency: i.Currency}
}

// TaxTotal is the sum of the lines' taxes.
func (i *Invoice) TaxTotal() domain.Money {
	return domain.Money{AmountMinor: i.TaxMinor, Currency: i.Currency}
}

// NetTotal is the total without its tax.
func (i *Invoice) NetTotal() domain.Money {
	return domain.Money{AmountMinor: i.TotalMinor - i.TaxMinor, Currency: i.Currency}
}

// AmountDue is what is left to pay: of what is not credited, what is not paid.
func (i *Invoice) AmountDue() domain.Money {
	if !i.Status.Owes() {
		return domain.Money{Currency: i.Currency}
	}
	return domain.Money{AmountMinor: i.TotalMinor - i.CreditedMinor - (i.PaidMinor - i.RefundDueMinor), Currency: i.Currency}
}

// AmountPaid is what the payments sum to.
func (i *Invoice) AmountPaid() domain.Money {
	return domain.Money{AmountMinor: i.PaidMinor, Currency: i.Currency}
}

// AmountCredited is what the credit notes sum to.
func (i *Invoice) AmountCredited() domain.Money {
	return domain.Money{AmountMinor: i.CreditedMinor, Currency: i.Currency}
}

// CreditLeft is what can still be credited.
func (i *Invoice) CreditLeft() domain.Money {
	return domain.Money{AmountMinor: i.TotalMinor - i.CreditedMinor, Currency: i.Currency}
}

// RefundDue is what of a credit note, or of all that credit an invoice, is to be given back: it was
// paid already.
func (i *Invoice) RefundDue() domain.Money {
	return domain.Money{AmountMinor: i.RefundDueMinor, Currency: i.Currency}
}

// Amount is what was paid.
func (p *InvoicePayment) Amount() domain.Money {
	return domain.Money{AmountMinor: p.AmountMinor, Currency: p.Currency}
}

// UnitPrice is what one costs.
func (p *Product) UnitPrice() domain.Money {
	return domain.Money{AmountMinor: p.UnitPriceMinor, Currency: p.Currency}
}

// Total is the sum of the order's lines.
func (o *Order) Total() domain.Money {
	return domain.Money{AmountMinor: o.TotalMinor, Currency: o.Currency}
}

// Refunded is what has been given back, or is about to be.
func (o *Order) Refunded() domain.Money {
	return domain.Money{AmountMinor: o.RefundedMinor, Currency: o.Currency}
}

// Amount is what was taken.
func (c *Capture) Amount() domain.Money {
	return domain.Money{AmountMinor: c.AmountMinor, Currency: c.Currency}
}

// Amount is what the event says; nil where it names no currency.
func (e *OpsPaymentEvent) Amount() *domain.Money {
	if e.Currency == "" {
		return nil
	}
	return &domain.Money{AmountMinor: e.AmountMinor, Currency: e.Currency}
}

// InvoiceWaive is why an invoice is waived.
type InvoiceWaive struct {
	Cause       string
	Reason      *string
	ExemptionID *domain.ExemptionID
	VerifiedAt  *time.Time
}

// Waive is why the invoice is waived; nil if it is not.
func (i *Invoice) Waive() *InvoiceWaive {
	if i.WaivedBy == nil {
		return nil
	}
	return &InvoiceWaive{*i.WaivedBy, i.WaiveReason, i.ExemptionID, i.WaiveVerifiedAt}
}

// ListedTaxIDs are the customer's.
func (c *Customer) ListedTaxIDs() []domain.TaxID { return c.TaxIDs }

// ListedTaxIDs are the seller's.
func (s *Seller) ListedTaxIDs() []domain.TaxID { return s.TaxIDs }
