package ordering_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/internal/domain"
	"countersign/internal/ordering"
	"countersign/internal/payment"
	"countersign/internal/testdb"
)

func (s *store) refund(t *testing.T, id domain.OrderID, amount domain.Cents) (outcome, error) {
	t.Helper()
	return s.Refund(t.Context(), s.caller, ordering.RefundOrderInput{OrderID: id, AmountMinor: &amount})
}

func (s *store) wantRefunds(t *testing.T, id domain.OrderID, reserved domain.Cents, want string) {
	t.Helper()
	got := testdb.Scan[string](t, s.DB, "SELECT coalesce(string_agg(amount_minor || ' ' || status, ', ' ORDER BY id), '') FROM refunds WHERE order_id = $1", id)
	if now := s.order(t, id).RefundedMinor; now != reserved || got != want {
		t.Errorf("%d are refunded by %q, want %d by %q", now, got, reserved, want)
	}
}

// Case 23: of 100.00, two refunds of 60.00 at once, both decided before either wrote: one is
// accepted, the other told what is left, and the provider gives back once.
func TestCase23TwoRefundsAtOnce(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.in(t, domain.OrderPaid)
	gate := s.Gate(t, "MoveOrder")
	codes := make([]domain.Code, 2)
	wait := meanwhile(func() {
		together(2, func(i int) {
			_, err := s.refund(t, order.ID, 6000)
			if codes[i] = codeOf(err); err != nil && !strings.Contains(err.Error(), "4000") {
				t.Errorf("the refusal does not say what is left: %v", err)
			}
		})
	})
	gate.Await(t, 2)
	gate.Open()
	wait()
	if codes[0] == codes[1] || codes[0]+codes[1] != domain.CodeRefundTooLarge {
		t.Errorf("got %q", codes)
	}
	s.wantRefunds(t, order.ID, 6000, "6000 SUCCEEDED")
	if n := s.provider.refunds.Load(); n != 1 || s.refunded(t) != 6000 {
		t.Errorf("%d calls, %d given back", n, s.refunded(t))
	}
	for _, amount := range []domain.Cents{4001, 0, -1} {
		if _, err := s.refund(t, order.ID, amount); err == nil {
			t.Errorf("%d were refunded", amount)
		}
	}
	if out, err := s.Refund(t.Context(), s.caller, ordering.RefundOrderInput{OrderID: order.ID}); err != nil || out.Value.Status != domain.OrderRefunded {
		t.Errorf("the rest: %+v, %v", out.Value, err)
	}
	s.wantHistory(t, order.ID, "PLACED", "PAID", "REFUND_REQUESTED", "PARTIALLY_REFUNDED", "REFUND_REQUESTED", "REFUNDED")
}

// The provider gives the money back and its answer is lost: the amount stays reserved, so nobody
// gives it back again, and the reconciler learns the answer under the same key, once.
func TestARefundWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.in(t, domain.OrderPaid)
	s.provider.network(nil, nil, s.lose)
	if out, err := s.refund(t, order.ID, 10000); err != nil || out.Value.Status != domain.OrderPaid {
		t.Errorf("unknown: %+v, %v", out.Value, err)
	}
	s.wantRefunds(t, order.ID, 10000, "10000 PENDING")
	_, err := s.refund(t, order.ID, 1)
	wantCode(t, err, domain.CodeRefundTooLarge)
	if done := s.reconcile(t); done != (ordering.Reconciled{}) {
		t.Errorf("reconciled while the provider is away: %+v", done)
	}
	s.provider.network(nil, nil, nil)
	if done := s.reconcile(t); done != (ordering.Reconciled{Refunds: 1}) {
		t.Errorf("reconciled: %+v", done)
	}
	if done := s.reconcile(t); done != (ordering.Reconciled{}) {
		t.Errorf("reconciled again: %+v", done)
	}
	s.wantStatus(t, order.ID, domain.OrderRefunded)
	s.wantRefunds(t, order.ID, 10000, "10000 SUCCEEDED")
	if s.refunded(t) != 10000 {
		t.Errorf("%d were given back", s.refunded(t))
	}
}

// lose is a refund that is made and whose answer is lost.
func (s *store) lose(ctx context.Context, r payment.Refund) (string, error) {
	_, err := s.provider.Simulated.Refund(ctx, r)
	return "", errors.Join(err, errors.New("no answer"))
}

// Once the provider may have forgotten the key, asking again could give the money back a second time:
// a person is asked to look, once, and the amount stays reserved.
func TestARefundAfterTheKeyWindow(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.in(t, domain.OrderPaid)
	s.provider.network(nil, nil, s.lose)
	if _, err := s.refund(t, order.ID, 4000); err != nil {
		t.Fatal(err)
	}
	s.provider.network(nil, nil, nil)
	s.later(25 * time.Hour)
	for range 2 {
		if done := s.reconcile(t); done != (ordering.Reconciled{Flagged: 1}) {
			t.Errorf("reconciled: %+v", done)
		}
	}
	if s.order(t, order.ID).Attention == nil || s.provider.refunds.Load() != 1 {
		t.Errorf("nobody is asked to look, or the provider was: %d calls", s.provider.refunds.Load())
	}
	s.wantRefunds(t, order.ID, 4000, "4000 PENDING")
	s.wantHistory(t, order.ID, "PLACED", "PAID", "REFUND_REQUESTED", "FLAGGED")
}

// A refund that the provider refuses has failed, and what it had reserved can be refunded again.
func TestARefundThatTheProviderRefuses(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.in(t, domain.OrderPaid)
	s.provider.network(nil, nil, func(context.Context, payment.Refund) (string, error) { return "", payment.ErrRefused })
	if out, err := s.refund(t, order.ID, 10000); err != nil || out.Value.Status != domain.OrderPaid || out.Value.RefundedMinor != 0 {
		t.Errorf("refused: %+v, %v", out.Value, err)
	}
	s.wantRefunds(t, order.ID, 0, "10000 FAILED")
	s.provider.network(nil, nil, nil)
	if out, err := s.refund(t, order.ID, 10000); err != nil || out.Value.Status != domain.OrderRefunded {
		t.Errorf("the next: %+v, %v", out.Value, err)
	}
	s.wantHistory(t, order.ID, "PLACED", "PAID", "REFUND_REQUESTED", "REFUND_FAILED", "REFUND_REQUESTED", "REFUNDED")
}

// The webhook of a refund is faster than the answer to the call that asked for it, or comes instead
// of it: it is counted once.
func TestARefundsWebhookBeforeItsAnswer(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]error{"before": nil, "instead": errors.New("no answer")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			order := s.in(t, domain.OrderPaid)
			s.provider.network(nil, nil, func(ctx context.Context, r payment.Refund) (string, error) {
				id, err := s.provider.Simulated.Refund(ctx, r)
				s.tell(t, "evt", order.ID, domain.FactRefunded, r.PaymentID, id, r.Amount.AmountMinor)
				return id, errors.Join(err, answer)
			})
			if _, err := s.refund(t, order.ID, 10000); err != nil {
				t.Error(err)
			}
			s.wantStatus(t, order.ID, domain.OrderRefunded)
			s.reconcile(t)
			s.wantRefunds(t, order.ID, 10000, "10000 SUCCEEDED")
			s.wantHistory(t, order.ID, "PLACED", "PAID", "REFUND_REQUESTED", "REFUNDED")
		})
	}
}

// Two refunds of one amount whose answers are lost: their webhooks do not say which is which, so they
// wait for the reconciler, which asks for each under its key. Each is counted once, as itself.
func TestTwoRefundsOfOneAmountWhoseAnswersAreLost(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.in(t, domain.OrderPaid)
	s.provider.network(nil, nil, s.lose)
	for range 2 {
		if _, err := s.refund(t, order.ID, 5000); err != nil {
			t.Fatal(err)
		}
	}
	ids := testdb.Scan[[]string](t, s.DB, "SELECT array_agg(refund_id ORDER BY refund_id DESC) FROM ops.simulated_refunds")
	for _, id := range ids { // the second one's first
		s.tell(t, id, order.ID, domain.FactRefunded, s.payment(t, order.ID), id, 5000)
	}
	s.wantRefunds(t, order.ID, 10000, "5000 PENDING, 5000 PENDING")
	s.provider.network(nil, nil, nil)
	s.reconcile(t)
	s.wantStatus(t, order.ID, domain.OrderRefunded)
	s.wantRefunds(t, order.ID, 10000, "5000 SUCCEEDED, 5000 SUCCEEDED")
	if got := testdb.Scan[[]string](t, s.DB, "SELECT array_agg(provider_refund_id ORDER BY provider_refund_id DESC) FROM refunds"); !slices.Equal(got, ids) {
		t.Errorf("the refunds are %v, the provider made %v", got, ids)
	}
	if again := s.reconcile(t); again != (ordering.Reconciled{}) || s.refunded(t) != 10000 {
		t.Errorf("reconciled again: %+v, %d given back", again, s.refunded(t))
	}
}

// A refund that was made elsewhere, of the amount of one whose answer is awaited, is taken for it at
// first; the answer says that there were two, and both count.
func TestARefundThatWasMadeElsewhere(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.in(t, domain.OrderPaid)
	s.provider.network(nil, nil, func(ctx context.Context, r payment.Refund) (string, error) {
		s.tell(t, "evt", order.ID, domain.FactRefunded, r.PaymentID, "elsewhere", r.Amount.AmountMinor)
		return s.provider.Simulated.Refund(ctx, r)
	})
	if _, err := s.refund(t, order.ID, 4000); err != nil {
		t.Error(err)
	}
	s.wantRefunds(t, order.ID, 8000, "4000 SUCCEEDED, 4000 SUCCEEDED")
	s.wantStatus(t, order.ID, domain.OrderPaid)
}
