package ordering_test

import (
	"slices"
	"testing"

	"countersign/internal/domain"
	"countersign/internal/payment"
	"countersign/internal/testdb"
)

// A hundred deliveries of one event at once, on two servers, make one transition; all are taken in.
func TestAHundredDeliveriesOfOneEvent(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	other := s.secondServer(t)
	order := s.place(t, payment.SimTimeoutUncharged)
	gate := s.Gate(t, "EveryPaymentEventInsert")
	wait := meanwhile(func() {
		together(100, func(i int) {
			[]*store{s, other}[i%2].tell(t, "evt", order.ID, domain.FactPaid, "p1", "", 10000)
		})
	})
	gate.Await(t, 40)
	gate.Open()
	wait()
	s.wantHistory(t, order.ID, "PLACED", "PAID")
	if got := s.captures(t, order.ID); !slices.Equal(got, []string{"p1 APPLIED"}) {
		t.Errorf("the captures are %v", got)
	}
	if n := testdb.Scan[int](t, s.DB, "SELECT count(*) FROM ops.payment_events WHERE result = 'PAID' AND conflicts = 0"); n != 1 {
		t.Errorf("%d events in the inbox", n)
	}
}

// A known event with other content is kept beside the first and counted, and changes nothing,
// whatever it is that differs.
func TestAKnownEventWithOtherContent(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order, other := s.place(t, payment.SimTimeoutUncharged), s.place(t, payment.SimTimeoutUncharged)
	s.tell(t, "evt", order.ID, domain.FactPaid, "p1", "", 10000)
	before := s.order(t, order.ID)
	s.tell(t, "evt", order.ID, domain.FactPaid, "p1", "", 10000) // the same: no conflict
	s.tell(t, "evt", order.ID, domain.FactRefunded, "p1", "r1", 10000)
	s.tell(t, "evt", order.ID, domain.FactPaid, "p1", "", 9000)
	s.tell(t, "evt", other.ID, domain.FactPaid, "p1", "", 10000)
	s.tell(t, "evt", order.ID, domain.FactPaid, "p2", "", 10000)
	yen := webhook("evt", order.ID, domain.FactPaid, "p1", "", 10000)
	yen.Fact.Amount.Currency = "JPY"
	if err := s.Receive(t.Context(), yen); err != nil {
		t.Error(err)
	}
	if now := s.order(t, order.ID); !now.UpdatedAt.Equal(before.UpdatedAt.Time) {
		t.Errorf("the order was changed: %+v", now)
	}
	s.wantHistory(t, other.ID, "PLACED")
	if got := testdb.Scan[string](t, s.DB, "SELECT format('%s %s', conflicts, conflict ->> 'ID') FROM ops.payment_events"); got != "5 evt" {
		t.Errorf("conflicts: %q", got)
	}
	// One that waits is still applied as it came first.
	third := s.place(t, payment.SimTimeoutUncharged)
	s.tell(t, "early", third.ID, domain.FactRefunded, "p3", "r3", 4000)
	s.tell(t, "early", third.ID, domain.FactRefunded, "p3", "r3", 10000)
	s.tell(t, "late", third.ID, domain.FactPaid, "p3", "", 10000)
	if now := s.wantStatus(t, third.ID, domain.OrderPaid); now.RefundedMinor != 4000 {
		t.Errorf("%d are refunded", now.RefundedMinor)
	}
}

// Case 20: what comes late changes nothing: refunded stays refunded, paid stays paid, and the event
// is kept.
func TestCase20LateEvents(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.place(t, payment.SimTimeoutUncharged)
	s.tell(t, "1", order.ID, domain.FactPaid, "p1", "", 10000)
	s.tell(t, "2", order.ID, domain.FactFailed, "p1", "", 10000)
	s.wantStatus(t, order.ID, domain.OrderPaid)
	s.tell(t, "3", order.ID, domain.FactRefunded, "p1", "r1", 10000)
	s.tell(t, "4", order.ID, domain.FactPaid, "p1", "", 10000)
	s.tell(t, "5", order.ID, domain.FactFailed, "p1", "", 10000)
	s.wantStatus(t, order.ID, domain.OrderRefunded)
	s.wantHistory(t, order.ID, "PLACED", "PAID", "REFUNDED")
	if got := testdb.Scan[[]string](t, s.DB, "SELECT array_agg(result ORDER BY event_id) FROM ops.payment_events"); !slices.Equal(got,
		[]string{"PAID", "UNCHANGED", "REFUNDED", "UNCHANGED", "UNCHANGED"}) {
		t.Errorf("the events came to %v", got)
	}
}

// Case 21: cancelled, then paid: it stays cancelled, and the money is a refund due, until it has gone
// back.
func TestCase21PaidAfterCancel(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.in(t, domain.OrderCancelled)
	s.tell(t, "1", order.ID, domain.FactPaid, "p1", "", 10000)
	s.wantStatus(t, order.ID, domain.OrderCancelled)
	if got := s.captures(t, order.ID); !slices.Equal(got, []string{"p1 REFUND_DUE"}) {
		t.Errorf("the captures are %v", got)
	}
	s.tell(t, "2", order.ID, domain.FactRefunded, "p1", "r1", 4000)
	s.tell(t, "3", order.ID, domain.FactRefunded, "p1", "r2", 6000)
	s.wantStatus(t, order.ID, domain.OrderCancelled)
	if got := s.captures(t, order.ID); !slices.Equal(got, []string{"p1 RETURNED"}) {
		t.Errorf("the captures are %v", got)
	}
}

// A payment, or a refund, that the provider has already told of another order is flagged on the one
// it is told of now: it neither counts twice, nor holds up what else the provider has to say.
func TestAPaymentOfAnotherOrder(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	first, second := s.place(t, payment.SimTimeoutUncharged), s.place(t, payment.SimTimeoutUncharged)
	s.tell(t, "1", first.ID, domain.FactPaid, "p1", "", 10000)
	s.tell(t, "2", first.ID, domain.FactRefunded, "p1", "r1", 4000)
	s.tell(t, "3", second.ID, domain.FactPaid, "p1", "", 10000)
	if now := s.wantStatus(t, second.ID, domain.OrderPending); now.Attention == nil {
		t.Error("nobody is asked to look")
	}
	s.tell(t, "4", second.ID, domain.FactPaid, "p2", "", 10000)
	s.tell(t, "5", second.ID, domain.FactRefunded, "p2", "r1", 10000)
	s.tell(t, "6", second.ID, domain.FactRefunded, "p2", "r2", 10000)
	s.wantStatus(t, second.ID, domain.OrderRefunded)
	s.wantHistory(t, second.ID, "PLACED", "FLAGGED", "PAID", "FLAGGED", "REFUNDED")
	s.wantHistory(t, first.ID, "PLACED", "PAID", "PARTIALLY_REFUNDED")
}
