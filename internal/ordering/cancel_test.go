package ordering_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"countersign/internal/domain"
	"countersign/internal/ordering"
	"countersign/internal/payment"
	"countersign/internal/testdb"
	"countersign/sqlc"
)

func (s *store) cancel(t *testing.T, id domain.OrderID, version *domain.Version) error {
	t.Helper()
	_, err := s.Cancel(t.Context(), s.caller, ordering.CancelOrderInput{OrderID: id, Version: version})
	return err
}

// attempt is an order's last attempt to be paid.
func (s *store) attempt(t *testing.T, id domain.OrderID) *sqlc.PaymentAttempt {
	t.Helper()
	attempts, err := s.AttemptsOf(t.Context(), s.caller, []*sqlc.Order{{ID: id}})
	if err != nil {
		t.Fatal(err)
	}
	return attempts[0][len(attempts[0])-1]
}

// An order whose payment is not known is not cancelled before the provider was asked. It was charged:
// the order turns out paid, and the cancel is an illegal move.
func TestCancelOfAnOrderThatTurnsOutPaid(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.place(t, payment.SimTimeoutCharged)
	wantCode(t, s.cancel(t, order.ID, &order.UpdatedAt), domain.CodeIllegalTransition)
	s.wantStatus(t, order.ID, domain.OrderPaid)
	s.wantHistory(t, order.ID, "PLACED", "PAID")
}

// It was declined: the order is cancelled, on the version that the caller saw, although what the
// provider said has moved it since.
func TestCancelOfAnOrderThatTurnsOutDeclined(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.place(t, payment.SimTimeoutUncharged)
	s.provider.network(nil, func(context.Context, string) (payment.Payment, error) {
		return payment.Payment{ID: "p1", Declined: "card_declined"}, nil
	}, nil)
	wantCode(t, s.cancel(t, order.ID, stale()), domain.CodeStaleVersion)
	if n := s.provider.finds.Load(); n != 0 {
		t.Errorf("the provider was asked %d times for a stale cancel", n)
	}
	wantCode(t, s.cancel(t, order.ID, &order.UpdatedAt), "")
	s.wantHistory(t, order.ID, "PLACED", "PAYMENT_FAILED", "CANCELLED")
}

// The provider knows nothing of it, or cannot be asked: as long as a call may be on its way the
// cancel is refused. After that the attempt is given up and the order cancelled; should it be charged
// all the same, that is a refund due.
func TestCancelOfAnOrderWhosePaymentStaysUnknown(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.place(t, payment.SimTimeoutUncharged)
	wantCode(t, s.cancel(t, order.ID, nil), domain.CodePaymentInProgress)
	s.later(59 * time.Second)
	wantCode(t, s.cancel(t, order.ID, nil), domain.CodePaymentInProgress)
	s.provider.network(nil, func(context.Context, string) (payment.Payment, error) {
		return payment.Payment{}, context.DeadlineExceeded
	}, nil)
	s.later(time.Hour)
	wantCode(t, s.cancel(t, order.ID, nil), domain.CodePaymentInProgress)
	s.wantHistory(t, order.ID, "PLACED")
	s.provider.network(nil, nil, nil)
	wantCode(t, s.cancel(t, order.ID, &order.UpdatedAt), "")
	s.wantHistory(t, order.ID, "PLACED", "PAYMENT_FAILED", "CANCELLED")

	late, err := s.provider.Simulated.Charge(t.Context(), payment.Charge{
		Key: s.attempt(t, order.ID).ID.String(), Reference: order.ID.String(), Method: payment.SimTimeoutUncharged, Amount: order.Total(),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.tell(t, "evt", order.ID, domain.FactPaid, late.ID, "", late.Amount.AmountMinor)
	s.wantStatus(t, order.ID, domain.OrderCancelled)
	if got := s.captures(t, order.ID); !slices.Equal(got, []string{late.ID + " REFUND_DUE"}) {
		t.Errorf("the captures are %v", got)
	}
}

// Proves the claim: an attempt that the reconciler is about to charge again is not given up, however
// old it is.
func TestCancelWhileTheReconcilerCharges(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.place(t, payment.SimTimeoutUncharged)
	s.later(time.Hour)
	reconciler := s.secondServer(t)
	charging, cancelled := make(chan struct{}), make(chan struct{})
	reconciler.provider.network(func(ctx context.Context, c payment.Charge) (payment.Payment, error) {
		close(charging)
		<-cancelled
		return reconciler.provider.Simulated.Charge(ctx, c)
	}, nil, nil)
	wait := meanwhile(func() { reconciler.reconcile(t) })
	<-charging
	wantCode(t, s.cancel(t, order.ID, nil), domain.CodePaymentInProgress)
	close(cancelled)
	wait()
	s.wantHistory(t, order.ID, "PLACED", "PAID")
}

// The other way round: the reconciler has asked, and learned that the provider knows nothing, when
// the order is cancelled. It does not charge for a cancelled order. And a cancel that has asked gives
// up nothing that was claimed since.
func TestTheReconcilerChargesNothingThatWasGivenUp(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	slow := s.secondServer(t)
	var order *sqlc.Order
	asked, answer := make(chan struct{}), make(chan struct{})
	find := func(ctx context.Context, key string) (payment.Payment, error) {
		found, err := slow.provider.Simulated.Find(ctx, key)
		asked <- struct{}{}
		<-answer
		return found, err
	}
	order = s.place(t, payment.SimTimeoutUncharged)
	s.later(time.Hour)
	slow.provider.network(nil, find, nil)
	wait := meanwhile(func() {
		if done := slow.reconcile(t); done.Settled != 0 {
			t.Errorf("reconciled: %+v", done)
		}
	})
	<-asked
	wantCode(t, s.cancel(t, order.ID, nil), "")
	answer <- struct{}{}
	wait()
	if n := slow.provider.charges.Load(); n != 0 || s.charged(t) != 0 {
		t.Errorf("%d calls, %d charged for a cancelled order", n, s.charged(t))
	}

	order = s.place(t, payment.SimTimeoutUncharged)
	s.later(time.Hour)
	wait = meanwhile(func() { wantCode(t, slow.cancel(t, order.ID, nil), domain.CodePaymentInProgress) })
	<-asked
	s.provider.network(func(context.Context, payment.Charge) (payment.Payment, error) {
		return payment.Payment{}, context.DeadlineExceeded // claimed, and not known to have been charged
	}, nil, nil)
	s.reconcile(t)
	answer <- struct{}{}
	wait()
	s.wantStatus(t, order.ID, domain.OrderPending)
}

// The stock of a cancelled order is given back once: not by a second cancel, and not by one at once,
// decided before the other wrote.
func TestStockIsGivenBackOnce(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.product = s.newProduct(t, "KING", s.product.UnitPrice(), ptr(int64(5)))
	left := func() int { return testdb.Scan[int](t, s.DB, "SELECT available FROM product_stock") }
	order := s.in(t, domain.OrderPending)
	if left() != 4 {
		t.Fatalf("%d are left", left())
	}
	gate := s.Gate(t, "MoveOrder")
	codes := make([]domain.Code, 2)
	wait := meanwhile(func() { together(2, func(i int) { codes[i] = codeOf(s.cancel(t, order.ID, nil)) }) })
	gate.Await(t, 2)
	gate.Open()
	wait()
	if !slices.Contains(codes, "") || !slices.Contains(codes, domain.CodeIllegalTransition) {
		t.Errorf("two at once: %q", codes)
	}
	wantCode(t, s.cancel(t, order.ID, nil), domain.CodeIllegalTransition)
	if left() != 5 {
		t.Errorf("%d are left", left())
	}
	s.in(t, domain.OrderRefunded) // what was delivered, or paid and given back, is not on the shelf
	if left() != 4 {
		t.Errorf("%d are left after a refund", left())
	}
}
