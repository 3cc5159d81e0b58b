package domain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"countersign/internal/domain"
)

var hundred = domain.Money{AmountMinor: 10000, Currency: "EUR"}

func fact(kind domain.FactKind, payment, refund string, amount domain.Cents) domain.Fact {
	return domain.Fact{Kind: kind, PaymentID: payment, RefundID: refund, Amount: domain.Money{AmountMinor: amount, Currency: "EUR"}}
}

// standing is an order of 100.00 in a state: what paid it, if it is paid, is the payment p1.
func standing(status domain.OrderStatus) domain.Standing {
	s := domain.Standing{Status: status, Total: hundred, Captures: map[string]domain.CaptureState{}, Refunds: map[string]bool{}}
	switch status {
	case domain.OrderPaid, domain.OrderFulfilled:
		s.Captures["p1"] = domain.CaptureApplied
	case domain.OrderRefunded:
		s.Captures["p1"], s.Refunds["r1"], s.Refunded = domain.CaptureApplied, true, 10000
	}
	return s
}

const wrong, again, over, foreign = "the captured amount is not the order's total", "an order was refunded that was refunded already",
	"a refund is larger than what is left of the payment", "a refund is in another currency"

// The table of what a fact does, written out: each row of the design's, and each state × kind of
// fact that it leaves open.
func TestEveryStateTimesEveryFact(t *testing.T) {
	t.Parallel()
	type j = domain.Judgement
	inYen := fact("payment.paid", "p1", "", 10000)
	inYen.Amount.Currency = "JPY"
	backInYen := fact("payment.refunded", "p1", "r9", 4000)
	backInYen.Amount.Currency = "JPY"
	paid, other := fact("payment.paid", "p1", "", 10000), fact("payment.paid", "p2", "", 10000)
	failed := fact("payment.failed", "p1", "", 10000)
	full, part := fact("payment.refunded", "p1", "r9", 10000), fact("payment.refunded", "p1", "r9", 4000)
	p1 := func(state domain.CaptureState) func(*domain.Standing) {
		return func(s *domain.Standing) { s.Captures["p1"] = state }
	}
	awaiting := func(n int) func(*domain.Standing) {
		return func(s *domain.Standing) { s.Awaited, s.Refunded = map[domain.Cents]int{4000: n}, 8000 }
	}
	due, flagged := j{Capture: domain.CaptureRefundDue}, j{Capture: domain.CaptureFlagged, Flag: wrong}
	for _, c := range []struct {
		name   string
		states string
		given  func(*domain.Standing)
		fact   domain.Fact
		want   j
	}{
		{"paid, amount and currency equal", "PENDING", nil, paid, j{Pay: true, Capture: domain.CaptureApplied}},
		{"paid, amount less", "PENDING", nil, fact("payment.paid", "p1", "", 9999), flagged},
		{"paid, amount more", "PENDING", nil, fact("payment.paid", "p1", "", 10001), flagged},
		{"paid, currency differs", "PENDING", nil, inYen, flagged},
		{"failed", "PENDING", nil, failed, j{FailAttempt: true}},
		{"refunded before paid", "PENDING", nil, full, j{Keep: true}},
		{"part refunded before paid", "PENDING", nil, part, j{Keep: true}},
		{"paid again where it is flagged", "PENDING", p1(domain.CaptureFlagged), paid, j{}},
		{"failed late where it is flagged", "PENDING", p1(domain.CaptureFlagged), failed, j{}},
		{"a flagged capture refunded", "PENDING", p1(domain.CaptureFlagged), full, j{Refund: domain.RefundOfDue}},

		{"failed late", "PAID FULFILLED REFUNDED", nil, failed, j{}},
		{"another payment failed", "PAID FULFILLED REFUNDED", nil, fact("payment.failed", "p2", "", 10000), j{}},
		{"the same payment's paid again", "PAID FULFILLED REFUNDED", nil, paid, j{}},
		{"the same payment's paid again, another amount", "PAID FULFILLED REFUNDED", nil, fact("payment.paid", "p1", "", 1), j{}},
		{"another payment's success", "PAID FULFILLED REFUNDED", nil, other, due},
		{"another payment's success, another amount", "PAID FULFILLED REFUNDED", nil, fact("payment.paid", "p2", "", 1), due},
		{"another payment refunded before paid", "PAID FULFILLED REFUNDED", nil, fact("payment.refunded", "p2", "r9", 1), j{Keep: true}},
		{"a refund due is settled", "PAID FULFILLED REFUNDED", func(s *domain.Standing) { s.Captures["p2"] = domain.CaptureRefundDue },
			fact("payment.refunded", "p2", "r9", 10000), j{Refund: domain.RefundOfDue}},

		{"cancelled, then paid", "CANCELLED", nil, paid, due},
		{"cancelled, then paid, another amount", "CANCELLED", nil, inYen, due},
		{"cancelled, then failed", "CANCELLED", nil, failed, j{}},
		{"cancelled, refunded before paid", "CANCELLED", nil, full, j{Keep: true}},
		{"cancelled, the refund due is settled", "CANCELLED", p1(domain.CaptureRefundDue), full, j{Refund: domain.RefundOfDue}},
		{"cancelled, paid again", "CANCELLED", p1(domain.CaptureRefundDue), paid, j{}},
		{"what went back, refunded again", "CANCELLED PENDING PAID", p1(domain.CaptureReturned), full, j{Flag: "a capture was refunded a second time"}},

		{"full refund", "PAID FULFILLED", nil, full, j{Refund: domain.RefundOfOrder}},
		{"partial refund", "PAID FULFILLED", nil, part, j{Refund: domain.RefundOfOrder}},
		{"the last of it", "PAID FULFILLED", func(s *domain.Standing) { s.Refunded = 6000 }, part, j{Refund: domain.RefundOfOrder}},
		{"more than is left", "PAID FULFILLED", func(s *domain.Standing) { s.Refunded = 6001 }, part, j{Flag: over}},
		{"refunded in another currency", "PAID FULFILLED", nil, backInYen, j{Flag: foreign}},
		{"a known refund again", "PAID FULFILLED REFUNDED", func(s *domain.Standing) { s.Refunds["r9"] = true }, full, j{}},
		{"our own refund, before its answer", "PAID FULFILLED", awaiting(1), part, j{Refund: domain.RefundOfOrder}},
		{"one of two own refunds, before their answers", "PAID FULFILLED", awaiting(2), part, j{Keep: true}},
		{"refunded again under a new refund id", "REFUNDED", nil, full, j{Flag: again}},
		{"refunded again under a new refund id, in part", "REFUNDED", nil, part, j{Flag: again}},

		{"something else", "PENDING PAID FULFILLED CANCELLED REFUNDED", nil, fact("payment.disputed", "p1", "", 1),
			j{Flag: "the provider sent an event of an unknown type"}},
	} {
		for _, status := range strings.Fields(c.states) {
			s := standing(domain.OrderStatus(status))
			if c.given != nil {
				c.given(&s)
			}
			if got := domain.Judge(s, c.fact); got != c.want {
				t.Errorf("%s, %s: got %+v, want %+v", status, c.name, got, c.want)
			}
		}
	}
}

// ledger is an order's money as the rows would have it: a model of what ordering does with a
// judgement.
type ledger struct {
	domain.Standing
	captured map[string]domain.Cents // by payment
	back     map[string]domain.Cents // given back, by payment
	seen     map[string]bool         // refunds that were counted, or flagged
	kept     []domain.Fact
}

func newLedger(status domain.OrderStatus) *ledger {
	return &ledger{standing(status), map[string]domain.Cents{}, map[string]domain.Cents{}, map[string]bool{}, nil}
}

// tell judges a fact, and then what had to wait, until nothing more can be applied.
func (l *ledger) tell(t *testing.T, f domain.Fact) {
	if !l.apply(t, f) {
		l.kept = append(l.kept, f)
	}
	for again := true; again; {
		again = false
		for i, waiting := range l.kept {
			if l.apply(t, waiting) {
				l.kept, again = slices.Delete(slices.Clone(l.kept), i, i+1), true
				break
			}
		}
	}
}

func (l *ledger) apply(t *testing.T, f domain.Fact) (done bool) {
	j := domain.Judge(l.Standing, f)
	if j.Keep {
		return false
	}
	if j.Capture != "" {
		l.Captures[f.PaymentID], l.captured[f.PaymentID] = j.Capture, f.Amount.AmountMinor
	}
	if j.Pay {
		l.move(t, domain.OrderPaid)
	}
	if f.Kind == domain.FactRefunded {
		l.seen[f.RefundID] = true
	}
	if j.Refund != "" {
		l.Refunds[f.RefundID] = true
		l.back[f.PaymentID] += f.Amount.AmountMinor
	}
	switch {
	case j.Refund == domain.RefundOfDue && l.back[f.PaymentID] >= l.captured[f.PaymentID]:
		l.Captures[f.PaymentID] = domain.CaptureReturned
	case j.Refund == domain.RefundOfOrder:
		if l.Refunded += f.Amount.AmountMinor; l.Refunded == l.Total.AmountMinor {
			l.move(t, domain.OrderRefunded)
		}
	}
	return true
}

func (l *ledger) move(t *testing.T, to domain.OrderStatus) {
	if err := l.Status.CheckMove(to); err != nil {
		t.Errorf("an illegal move: %v", err)
	}
	l.Status = to
}

// accounts says where each payment and refund went. Which of two payments paid the order, and which
// of two refunds that together exceed one was flagged, is decided by who came first; amounts are
// compared where the facts agree with each other.
func (l *ledger) accounts(agreeing bool) string {
	var lines []string
	for payment, amount := range l.captured {
		line := payment
		if agreeing {
			line += " " + fmt.Sprint(amount) + " back " + fmt.Sprint(l.back[payment])
		}
		lines = append(lines, line)
	}
	for refund := range l.seen {
		lines = append(lines, refund)
	}
	for _, f := range l.kept {
		if line := "kept " + f.RefundID; !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, ", ")
}

// All sequences of up to four facts, from a pending order and from a cancelled one: an order is paid
// once, never refunded past its total, moves legally, and whatever order the facts arrive in, and
// however often, the same money is accounted for.
func TestEveryOrderOfArrivalAccountsForTheSameMoney(t *testing.T) {
	t.Parallel()
	alphabet := []domain.Fact{
		fact("payment.paid", "p1", "", 10000), fact("payment.paid", "p1", "", 9000), fact("payment.paid", "p2", "", 10000),
		fact("payment.failed", "p1", "", 10000), fact("payment.refunded", "p1", "r1", 10000),
		fact("payment.refunded", "p1", "r2", 4000), fact("payment.refunded", "p2", "r3", 10000),
	}
	for _, start := range []domain.OrderStatus{domain.OrderPending, domain.OrderCancelled} {
		accounts := map[int]string{} // by the set of facts, a bit each
		sequences := 0
		var walk func(sequence []int, set int)
		walk = func(sequence []int, set int) {
			if len(sequence) > 0 {
				sequences++
				l := newLedger(start)
				for _, i := range sequence {
					l.tell(t, alphabet[i])
				}
				applied := 0
				for _, state := range l.Captures {
					if state == domain.CaptureApplied {
						applied++
					}
				}
				if applied > 1 || (applied == 1) != (l.Status == domain.OrderPaid || l.Status == domain.OrderRefunded) {
					t.Errorf("%s %v: %s with %d captures applied", start, sequence, l.Status, applied)
				}
				if l.Refunded > l.Total.AmountMinor || (l.Status == domain.OrderRefunded) != (l.Refunded == l.Total.AmountMinor) {
					t.Errorf("%s %v: %s with %d refunded", start, sequence, l.Status, l.Refunded)
				}
				agreeing := set&0b11 != 0b11 && set&0b110000 != 0b110000
				got := l.accounts(agreeing)
				if want, known := accounts[set]; known && got != want {
					t.Errorf("%s %v: accounts for %q; in another order for %q", start, sequence, got, want)
				}
				accounts[set] = got
			}
			if len(sequence) == 4 {
				return
			}
			for i := range alphabet {
				walk(append(slices.Clone(sequence), i), set|1<<i)
			}
		}
		walk(nil, 0)
		if sequences != 7+7*7+7*7*7+7*7*7*7 {
			t.Errorf("%d sequences were walked", sequences)
		}
	}
}
