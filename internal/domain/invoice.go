package domain

import (
	"errors"
	"slices"
	"strconv"
)

// InvoiceStatus is where an invoice stands. A draft starts as DRAFT, an invoice that was allocated
// directly as PENDING, a month's as OPEN, and a credit note is ISSUED.
type InvoiceStatus string

// The states of an invoice.
const (
	InvoiceDraft   InvoiceStatus = "DRAFT"   // written, without a number
	InvoiceDeleted InvoiceStatus = "DELETED" // a draft that was given up
	InvoiceOpen    InvoiceStatus = "OPEN"    // a month that still accrues, without a number
	InvoicePending InvoiceStatus = "PENDING" // final and numbered, awaiting payment
	InvoicePaid    InvoiceStatus = "PAID"    // nothing is left to pay, by payments and credits
	InvoiceWaived  InvoiceStatus = "WAIVED"  // recorded, nothing due; the total is still the sum of its lines
	InvoiceVoid    InvoiceStatus = "VOID"
	InvoiceIssued  InvoiceStatus = "ISSUED" // a credit note
)

// InvoiceStatuses are all of them.
var InvoiceStatuses = []InvoiceStatus{
	InvoiceDraft, InvoiceDeleted, InvoiceOpen, InvoicePending, InvoicePaid, InvoiceWaived, InvoiceVoid, InvoiceIssued,
}

// invoiceSources is the state machine: from where each status may be reached. DELETED, PAID, VOID and
// ISSUED are final.
var invoiceSources = map[InvoiceStatus][]InvoiceStatus{
	InvoiceDeleted: {InvoiceDraft},
	InvoiceOpen:    {InvoiceWaived},
	InvoicePending: {InvoiceDraft, InvoiceOpen, InvoiceWaived},
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
	return IllegalInvoiceMove(s, to)
}

// IllegalInvoiceMove refuses a move of an invoice, naming both states.
func IllegalInvoiceMove(from, to InvoiceStatus) error {
	return &IllegalInvoiceTransitionError{
		Refusal: *Refuse(CodeIllegalTransition, Input("invoiceId"), "an invoice that is %s cannot become %s", from, to),
		From:    from, To: to,
	}
}

// notCreditable is why an invoice that stands elsewhere than at PENDING or PAID cannot be credited.
var notCreditable = map[InvoiceStatus]string{
	InvoiceDraft:   "it asks for nothing yet, and is edited, or deleted",
	InvoiceDeleted: "it never asked for anything",
	InvoiceOpen:    "it still accrues, and is not final",
	InvoiceWaived:  "nothing of it is asked for",
	InvoiceVoid:    "nothing of it is asked for any more",
	InvoiceIssued:  "it is a credit note itself",
}

// CheckCreditable refuses to credit what is not final, or asks for nothing, and says why. A credit leads
// to where nothing is left to pay.
func (s InvoiceStatus) CheckCreditable() error {
	if s == InvoicePending || s == InvoicePaid {
		return nil
	}
	return &IllegalInvoiceTransitionError{
		Refusal: *Refuse(CodeIllegalTransition, Input("invoiceId"), "an invoice that is %s cannot be credited: %s", s, notCreditable[s]),
		From:    s, To: InvoicePaid,
	}
}

// NumberedOtherwise refuses to make an invoice final by another series or on another day than it was.
func NumberedOtherwise(status InvoiceStatus, number string, series SeriesID, day Date) error {
	return &IllegalInvoiceTransitionError{
		Refusal: *Refuse(CodeIllegalTransition, Input("invoiceId"), "the invoice is final already: it has the number %s of the series %s, issued on %s", number, series, day),
		From:    status, To: InvoicePending,
	}
}

// IllegalInvoiceTransitionError refuses a move that an invoice's state does not allow.
type IllegalInvoiceTransitionError struct {
	Refusal
	From, To InvoiceStatus
}

// Owes says whether an invoice that stands here is to be paid.
func (s InvoiceStatus) Owes() bool { return s == InvoiceOpen || s == InvoicePending }

// Draft says whether an invoice that stands here was never more than a draft.
func (s InvoiceStatus) Draft() bool { return s == InvoiceDraft || s == InvoiceDeleted }

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
	InvoiceDirect     InvoiceKind = "DIRECT"      // allocated with its lines, or finalised from a draft
	InvoiceUsage      InvoiceKind = "USAGE"       // a customer's month, which usage is folded into
	InvoiceResidual   InvoiceKind = "RESIDUAL"    // usage that could not be folded into its month any more
	InvoiceCreditNote InvoiceKind = "CREDIT_NOTE" // takes back from an invoice
)

// SeriesDocument is what a series numbers: a series of one never numbers the other.
type SeriesDocument string

// The documents that are numbered.
const (
	DocumentInvoice    SeriesDocument = "INVOICE"
	DocumentCreditNote SeriesDocument = "CREDIT_NOTE"
)

// InvoiceLineInput is a line as the client states it. A negative unit amount is a discount. What
// was added after the first release is left out of the canonical form where it is not given, so
// that old keys still name their input.
type InvoiceLineInput struct {
	Description     string        `json:"description"`
	Quantity        int32         `json:"quantity"`
	UnitAmountMinor Cents         `json:"unitAmountMinor"`
	TaxRate         *Decimal      `json:"taxRate,omitempty"`
	TaxTreatment    *TaxTreatment `json:"taxTreatment,omitempty"`
}

// Amount is quantity × unit amount, or an AMOUNT_OVERFLOW.
func (l InvoiceLineInput) Amount() (Cents, error) { return l.UnitAmountMinor.Times(int64(l.Quantity)) }

// MaxInvoiceLines bounds an invoice.
const MaxInvoiceLines = 1000

// maxDescription is the longest description of a line, in characters.
const maxDescription = 500

// InvoiceAmounts are what lines come to: their gross amounts sum to Total, their taxes to Tax.
type InvoiceAmounts struct {
	Total, Tax Cents
	Lines      []LineAmounts
}

// add adds a line.
func (a *InvoiceAmounts) add(line LineAmounts) (err error) {
	if a.Total, err = a.Total.Add(line.Gross); err != nil {
		return err
	}
	a.Tax, err = a.Tax.Add(line.Tax)
	a.Lines = append(a.Lines, line)
	return err
}

// TotalOfLines checks the lines and adds them up. Errors name each line at fault by its path.
func TotalOfLines(lines []InvoiceLineInput) (sum InvoiceAmounts, err error) {
	if len(lines) == 0 || len(lines) > MaxInvoiceLines {
		return sum, BadInputAt(Input("lines"), "an invoice has 1 to %d lines", MaxInvoiceLines)
	}
	var faults []error
	for i, line := range lines {
		at := func(field string) []string { return Input("lines", strconv.Itoa(i), field) }
		if err := line.check(at); err != nil {
			return InvoiceAmounts{}, err
		}
		if line.Quantity < 1 {
			faults = append(faults, Refuse(CodeInvalidQuantity, at("quantity"), "a quantity is at least 1"))
			continue
		}
		amounts, err := line.Amounts()
		if err == nil {
			err = sum.add(amounts)
		}
		if err != nil {
			faults = append(faults, Refuse(CodeAmountOverflow, at("unitAmountMinor"), "%s", err.Error()))
		}
	}
	if len(faults) > 0 {
		return InvoiceAmounts{}, errors.Join(faults...)
	}
	if sum.Total < 0 {
		return InvoiceAmounts{}, Refuse(CodeNegativeTotal, Input("lines"), "the lines sum to less than zero")
	}
	return sum, nil
}

// check refuses a line that no invoice could hold.
func (l InvoiceLineInput) check(at func(field string) []string) error {
	if err := CheckText(at("description"), l.Description, maxDescription); err != nil {
		return err
	}
	if l.TaxRate != nil {
		return checkTaxRate(at("taxRate"), *l.TaxRate)
	}
	if l.TaxTreatment != nil {
		return BadInputAt(at("taxTreatment"), "a line without a tax rate has no tax treatment")
	}
	return nil
}
