package domain

// AttemptStatus is how far a payment attempt has come. PENDING is unknown, not failed: only the
// provider's answer ends it.
type AttemptStatus string

// An attempt ends once.
const (
	AttemptPending   AttemptStatus = "PENDING"
	AttemptSucceeded AttemptStatus = "SUCCEEDED"
	AttemptFailed    AttemptStatus = "FAILED"
)

// CaptureState is what became of money that a provider took.
type CaptureState string

// Every capture pays its order, or is to be given back, or waits for a person; money that was given
// back is settled.
const (
	CaptureApplied   CaptureState = "APPLIED"
	CaptureRefundDue CaptureState = "REFUND_DUE"
	CaptureFlagged   CaptureState = "FLAGGED"
	CaptureReturned  CaptureState = "RETURNED"
)

// Owed says whether the money is to be given back, or waits for a person to say so.
func (s CaptureState) Owed() bool { return s == CaptureRefundDue || s == CaptureFlagged }

// RefundStatus is how far a refund has come. PENDING is unknown, as with an attempt.
type RefundStatus string

// A refund ends once.
const (
	RefundPending   RefundStatus = "PENDING"
	RefundSucceeded RefundStatus = "SUCCEEDED"
	RefundFailed    RefundStatus = "FAILED"
)

// FactKind is what a provider says of a payment.
type FactKind string

// The facts, by the names that webhooks give them.
const (
	FactPaid     FactKind = "payment.paid"
	FactFailed   FactKind = "payment.failed"
	FactRefunded FactKind = "payment.refunded"
)

// Fact is what a provider says of a payment, in its answer to a call or in a webhook.
type Fact struct {
	Kind      FactKind
	PaymentID string // the provider's
	RefundID  string // the provider's, of a refund
	Amount    Money
}

// Standing is what an order's rows say of its money when a fact arrives.
type Standing struct {
	Status   OrderStatus
	Total    Money
	Refunded Cents                   // given back of what paid it, or about to be
	Captures map[string]CaptureState // by the provider's payment id
	Refunds  map[string]bool         // the provider's refund ids that are known
	Awaited  map[Cents]int           // how many of our own refunds of an amount wait for their answer
}

// Judgement is what a fact does to an order.
type Judgement struct {
	Keep        bool         // nothing yet: it is applied when what it refers to has arrived
	Pay         bool         // the order becomes PAID
	FailAttempt bool         // the attempt that it is about has failed
	Capture     CaptureState // a capture to be recorded; "" for none
	Refund      RefundUse    // what was given back; "" for nothing
	Flag        string       // why a person has to look at it; "" where nobody has to
}

// RefundUse is what a refund was for.
type RefundUse string

// A refund is of the capture that paid the order, or settles one that was due.
const (
	RefundOfOrder RefundUse = "ORDER"
	RefundOfDue   RefundUse = "DUE"
)

// Judge is the table of what a fact does to an order in each state. It is total: a fact that has
// nothing to do leaves everything as it is.
func Judge(s Standing, f Fact) Judgement {
	switch f.Kind {
	case FactPaid:
		return s.paid(f)
	case FactFailed:
		_, captured := s.Captures[f.PaymentID]
		return Judgement{FailAttempt: s.Status == OrderPending && !captured}
	case FactRefunded:
		return s.refunded(f)
	}
	return Judgement{Flag: "the provider sent an event of an unknown type"}
}

func (s Standing) paid(f Fact) Judgement {
	if _, again := s.Captures[f.PaymentID]; again {
		return Judgement{}
	}
	switch {
	case s.Status != OrderPending: // paid by another payment, or cancelled: the money is to go back
		return Judgement{Capture: CaptureRefundDue}
	case f.Amount != s.Total:
		return Judgement{Capture: CaptureFlagged, Flag: "the captured amount is not the order's total"}
	}
	return Judgement{Pay: true, Capture: CaptureApplied}
}

func (s Standing) refunded(f Fact) Judgement {
	if s.Refunds[f.RefundID] {
		return Judgement{}
	}
	switch s.Captures[f.PaymentID] {
	case CaptureRefundDue, CaptureFlagged:
		return Judgement{Refund: RefundOfDue}
	case CaptureReturned:
		return Judgement{Flag: "a capture was refunded a second time"}
	case CaptureApplied:
	default: // its payment has not arrived
		return Judgement{Keep: true}
	}
	switch {
	case s.Status == OrderRefunded:
		return Judgement{Flag: "an order was refunded that was refunded already"}
	case s.Awaited[f.Amount.AmountMinor] > 1: // the answers to them will say which one it is
		return Judgement{Keep: true}
	case f.Amount.Currency != s.Total.Currency:
		return Judgement{Flag: "a refund is in another currency"}
	case s.Awaited[f.Amount.AmountMinor] == 0 && f.Amount.AmountMinor > s.Total.AmountMinor-s.Refunded:
		return Judgement{Flag: "a refund is larger than what is left of the payment"}
	}
	return Judgement{Refund: RefundOfOrder}
}
