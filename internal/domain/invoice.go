package domain

import (
	"errors"
	"strconv"
)

// InvoiceStatus is where an invoice stands. An invoice that was allocated directly starts as
// PENDING.
type InvoiceStatus string

// InvoicePending is final and numbered, awaiting payment.
const InvoicePending InvoiceStatus = "PENDING"

// Owes says whether an invoice that stands here is to be paid.
func (s InvoiceStatus) Owes() bool { return s == InvoicePending }

// InvoiceKind is how an invoice came to be.
type InvoiceKind string

// InvoiceDirect was allocated with its lines by allocateInvoice.
const InvoiceDirect InvoiceKind = "DIRECT"

// SeriesDocument is what a series numbers: a series of one never numbers the other.
type SeriesDocument string

// The documents that are numbered.
const (
	DocumentInvoice    SeriesDocument = "INVOICE"
	DocumentCreditNote SeriesDocument = "CREDIT_NOTE"
)

// InvoiceLineInput is a line as the client states it. A negative unit amount is a discount.
type InvoiceLineInput struct {
	Description     string `json:"description"`
	Quantity        int32  `json:"quantity"`
	UnitAmountMinor Cents  `json:"unitAmountMinor"`
}

// Amount is quantity × unit amount, or an AMOUNT_OVERFLOW.
func (l InvoiceLineInput) Amount() (Cents, error) { return l.UnitAmountMinor.Times(int64(l.Quantity)) }

// MaxInvoiceLines bounds an invoice, and with it what one statement writes.
const MaxInvoiceLines = 1000

// maxDescription is the longest description of a line, in characters.
const maxDescription = 500

// TotalOfLines checks the lines and adds them up. Errors name each line at fault by its path.
func TotalOfLines(lines []InvoiceLineInput) (total Cents, err error) {
	if len(lines) == 0 || len(lines) > MaxInvoiceLines {
		return 0, BadInputAt(Input("lines"), "an invoice has 1 to %d lines", MaxInvoiceLines)
	}
	var faults []error
	for i, line := range lines {
		at := func(field string) []string { return Input("lines", strconv.Itoa(i), field) }
		if err := CheckText(at("description"), line.Description, maxDescription); err != nil {
			return 0, err
		}
		if line.Quantity < 1 {
			faults = append(faults, Refuse(CodeInvalidQuantity, at("quantity"), "a quantity is at least 1"))
			continue
		}
		amount, err := line.Amount()
		if err == nil {
			total, err = total.Add(amount)
		}
		if err != nil {
			faults = append(faults, Refuse(CodeAmountOverflow, at("unitAmountMinor"), "%s", err.Error()))
		}
	}
	if len(faults) > 0 {
		return 0, errors.Join(faults...)
	}
	if total < 0 {
		return 0, Refuse(CodeNegativeTotal, Input("lines"), "the lines sum to less than zero")
	}
	return total, nil
}
