package ordering_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"countersign/internal/domain"
	"countersign/internal/ordering"
	"countersign/internal/payment"
	"countersign/internal/testdb"
)

// Case 22: the webhook never comes. The reconciler finds the charge, or makes it under the same key;
// the order is paid once, and a second run has nothing to do.
func TestCase22TheWebhookNeverComes(t *testing.T) {
	t.Parallel()
	for method, calls := range map[string]int32{payment.SimTimeoutCharged: 1, payment.SimTimeoutUncharged: 2, payment.SimErrorThenOK: 2} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			order := s.place(t, method)
			s.wantStatus(t, order.ID, domain.OrderPending)
			if done := s.reconcile(t); done != (ordering.Reconciled{Settled: 1}) {
				t.Errorf("reconciled: %+v", done)
			}
			s.wantStatus(t, order.ID, domain.OrderPaid)
			if done := s.reconcile(t); done != (ordering.Reconciled{}) {
				t.Errorf("reconciled again: %+v", done)
			}
			s.wantHistory(t, order.ID, "PLACED", "PAID")
			if n := s.provider.charges.Load(); n != calls || s.charged(t) != 10000 || s.count(t, "ops.simulated_payments") != 1 {
				t.Errorf("%d calls, %d charged; want %d calls", n, s.charged(t), calls)
			}
			s.tell(t, "evt", order.ID, domain.FactPaid, s.payment(t, order.ID), "", 10000) // it comes after all
			s.wantHistory(t, order.ID, "PLACED", "PAID")
		})
	}
}

// Two reconcilers at once, both at the attempt: it is charged once, and paid once.
func TestTwoReconcilersAtOnce(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.place(t, payment.SimTimeoutUncharged)
	servers := []*store{s, s.secondServer(t)}
	gate := s.Gate(t, "LockOrder")
	wait := meanwhile(func() { together(2, func(i int) { servers[i].reconcile(t) }) })
	gate.Await(t, 2)
	gate.Open()
	wait()
	s.reconcile(t)
	s.wantHistory(t, order.ID, "PLACED", "PAID")
	if n := s.provider.charges.Load() + servers[1].provider.charges.Load(); n != 2 || s.charged(t) != 10000 {
		t.Errorf("%d calls, the first included, and %d charged", n, s.charged(t))
	}
}

// What is young is left alone: its call may be on its way.
func TestWhatIsYoungIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.place(t, payment.SimTimeoutCharged)
	for _, want := range []domain.OrderStatus{domain.OrderPending, domain.OrderPaid} {
		if _, err := s.Reconcile(t.Context(), time.Minute); err != nil {
			t.Error(err)
		}
		s.wantStatus(t, order.ID, want)
		s.later(2 * time.Minute)
	}
}

// Once the provider may have forgotten the key, a second call could charge a second time: a person is
// asked to look, once, and nothing is called. What the person finds out is taken in as ever.
func TestAfterTheKeyWindowAPersonHasToLook(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.place(t, payment.SimTimeoutUncharged)
	s.later(25 * time.Hour)
	for range 2 {
		if done := s.reconcile(t); done != (ordering.Reconciled{Flagged: 1}) {
			t.Errorf("reconciled: %+v", done)
		}
	}
	if now := s.wantStatus(t, order.ID, domain.OrderPending); now.Attention == nil {
		t.Error("nobody is asked to look")
	}
	s.wantHistory(t, order.ID, "PLACED", "FLAGGED")
	if n := s.provider.charges.Load(); n != 1 || s.charged(t) != 0 {
		t.Errorf("%d calls, %d charged", n, s.charged(t))
	}
	_, err := s.RetryPayment(t.Context(), s.caller, ordering.RetryPaymentInput{OrderID: order.ID})
	wantCode(t, err, domain.CodePaymentInProgress)
	s.tell(t, "evt", order.ID, domain.FactPaid, "p1", "", 10000)
	s.wantStatus(t, order.ID, domain.OrderPaid)
}

// A provider that cannot be asked leaves everything unknown, of one order and of the next, and the
// next run settles them.
func TestTheProviderIsAway(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.place(t, payment.SimTimeoutCharged)
	s.place(t, payment.SimTimeoutUncharged)
	s.provider.network(nil, func(context.Context, string) (payment.Payment, error) {
		return payment.Payment{}, errors.New("no route")
	}, nil)
	if done := s.reconcile(t); done != (ordering.Reconciled{Pending: 2}) {
		t.Errorf("reconciled: %+v", done)
	}
	s.provider.network(nil, nil, nil)
	if done := s.reconcile(t); done != (ordering.Reconciled{Settled: 2}) {
		t.Errorf("reconciled again: %+v", done)
	}
}

// What another provider was asked is not this one's to find, nor to charge again.
func TestWhatAnotherProviderWasAsked(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.place(t, payment.SimTimeoutUncharged)
	s.Exec(t, "UPDATE payment_attempts SET provider = 'retired'")
	if done := s.reconcile(t); done != (ordering.Reconciled{Pending: 1}) {
		t.Errorf("reconciled: %+v", done)
	}
	s.later(time.Hour)
	wantCode(t, s.cancel(t, order.ID, nil), domain.CodePaymentInProgress)
	if n := s.provider.charges.Load(); n != 1 || s.provider.finds.Load() != 0 {
		t.Errorf("%d calls, %d look-ups", n, s.provider.finds.Load())
	}
}

// A declined attempt ends; the next one is another, with a key of its own, and its answer is the
// order's.
func TestRetryPayment(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.place(t, payment.SimDeclined)
	retry := func(method string) (domain.OrderStatus, error) {
		out, err := s.RetryPayment(t.Context(), s.caller, ordering.RetryPaymentInput{OrderID: order.ID, PaymentMethod: &method})
		if err != nil {
			return "", err
		}
		return out.Value.Status, nil
	}
	if got, err := retry(payment.SimDeclined); err != nil || got != domain.OrderPending {
		t.Errorf("declined again: %s, %v", got, err)
	}
	if got, err := retry(payment.SimTimeoutCharged); err != nil || got != domain.OrderPending {
		t.Errorf("no answer: %s, %v", got, err)
	}
	_, err := retry(payment.SimOK)
	wantCode(t, err, domain.CodePaymentInProgress)
	s.reconcile(t)
	s.wantStatus(t, order.ID, domain.OrderPaid)
	_, err = retry(payment.SimOK)
	wantCode(t, err, domain.CodeIllegalTransition)
	if got := testdb.Scan[string](t, s.DB, "SELECT string_agg(ordinal || ' ' || status, ', ' ORDER BY ordinal) FROM payment_attempts"); got != "1 FAILED, 2 FAILED, 3 SUCCEEDED" {
		t.Errorf("the attempts are %s", got)
	}
	if s.charged(t) != 10000 {
		t.Errorf("%d are charged", s.charged(t))
	}
}
