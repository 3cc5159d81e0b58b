package domain

import (
	"errors"
	"slices"
	"strconv"
)

// InvoiceStatus is where an invoice stands. An invoice that was allocated directly starts as
// PENDING, a month's as OPEN.
type InvoiceStatus string

// The states of an invoice.
const (
	InvoiceOpen    InvoiceStatus = "OPEN"    // a month that still accrues, without a number
	InvoicePending InvoiceStatus = "PENDING" // final and numbered, awaiting payment
	InvoicePaid    InvoiceStatus = "PAID"
	InvoiceWaived  InvoiceStatus = "WAIVED" // recorded, nothing due; the total is still the sum of its lines
	InvoiceVoid    InvoiceStatus = "VOID"
)

// InvoiceStatuses are all of them.
var InvoiceStatuses = []InvoiceStatus{InvoiceOpen, InvoicePending, InvoicePaid, InvoiceWaived, InvoiceVoid}

// invoiceSources is the state machine: from where each status may be reached. PAID and VOID are
// final.
var invoiceSources = map[InvoiceStatus][]InvoiceStatus{
	InvoiceOpen:    {InvoiceWaived},
	InvoicePending: {InvoiceOpen, InvoiceWaived},
	InvoicePaid:    {InvoiceOpen, InvoicePending},
	InvoiceWaived:  {InvoiceOpen, InvoicePending},
	InvoiceVoid:    {InvoiceOpen, InvoicePending, InvoiceWaived},
}

// Sources are the statuses from which an invoice may move to this one.
func (s InvoiceStatus) Sources() []InvoiceStatus { return invoiceSources[s] }

// CheckMove refuses a move that the state machine does not have, naming both states.
func (s InvoiceStatus) CheckMove(to InvoiceStatus) error {
	if slices.Contains(to.Sources(), s) {
		return nil
	}
	return &IllegalInvoiceTransitionError{
		Refusal: *Refuse(CodeIllegalTransition, Input("invoiceId"), "an invoice that is %s cannot become %s", s, to),
		From:    s, To: to,
	}
}

// IllegalInvoiceTransitionError refuses a move that an invoice's state does not allow.
type IllegalInvoiceTransitionError struct {
	Refusal
	From, To InvoiceStatus
}

// Owes says whether an invoice that stands here is to be paid.
func (s InvoiceStatus) Owes() bool { return s == InvoiceOpen || s == InvoicePending }

// WaiveCause is why an invoice is waived. Only an exemption's is verified, swept and reinstated.
const (
	WaivedByExemption = "EXEMPTION"
	WaivedByHand      = "MANUAL"
)

// Placing is where a settlement's value is to go.
type Placing string

// The places.
const (
	PlaceInNewInvoice Placing = "NEW"    // the month has no invoice yet
	PlaceInInvoice    Placing = "FOLD"   // it accrues
	PlaceInWaived     Placing = "WAIVED" // it is waived by an exemption that stands
	PlaceReinstated   Placing = "REINSTATE"
	PlaceApart        Placing = "APART" // an invoice of its own
)

// Place decides where a settlement's value goes, by the month's invoice ("" for none), whether that
// is waived by an exemption and numbered, whether the customer is exempt, and whether the month is
// closed.
func Place(invoice InvoiceStatus, waivedBy string, numbered, exempt, closed bool) Placing {
	switch {
	case closed:
		return PlaceApart
	case invoice == "":
		return PlaceInNewInvoice
	case invoice == InvoiceOpen:
		return PlaceInInvoice
	case invoice == InvoiceWaived && waivedBy == WaivedByExemption && exempt:
		return PlaceInWaived
	case invoice == InvoiceWaived && waivedBy == WaivedByExemption && !numbered:
		return PlaceReinstated
	}
	return PlaceApart
}

// AddExact adds an exact amount to an invoice's lines: the total is their sum, rounded half to even,
// and the adjustment is what the rounding added.
func AddExact(total Cents, adjustment, amount Decimal) (Cents, Decimal, error) {
	sum, err := DecimalOf(total).Minus(adjustment)
	if err == nil {
		sum, err = sum.Plus(amount)
	}
	if err != nil {
		return 0, Decimal{}, err
	}
	if total, err = sum.Cents(); err != nil {
		return 0, Decimal{}, err
	}
	adjustment, err = DecimalOf(total).Minus(sum)
	return total, adjustment, err
}

// InvoiceKind is how an invoice came to be.
type InvoiceKind string

// The kinds.
const (
	InvoiceDirect   InvoiceKind = "DIRECT"   // allocated with its lines by allocateInvoice
	InvoiceUsage    InvoiceKind = "USAGE"    // a customer's month, which usage is folded into
	InvoiceResidual InvoiceKind = "RESIDUAL" // usage that could not be folded into its month any more
)

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
