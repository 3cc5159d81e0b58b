package ordering_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"countersign/internal/domain"
	"countersign/internal/ordering"
	"countersign/internal/payment"
	"countersign/internal/testdb"
)

// Once the provider's key has expired nobody asks about a refund any more: a person says what became of it,
// of the order's own money and of a payment that was due, made or not. Before that nobody may.
func TestARefundThatAPersonSettles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		own, made bool
		want      []string
	}{
		{"of the order, made", true, true, []string{"FLAGGED", "REFUNDED"}},
		{"of the order, not made", true, false, []string{"FLAGGED", "REFUND_FAILED"}},
		{"of what was due, made", false, true, []string{"FLAGGED", "REFUND_SETTLED"}},
		{"of what was due, not made", false, false, []string{"FLAGGED", "REFUND_FAILED"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			order, reserved := s.in(t, domain.OrderPaid), domain.Cents(10000)
			s.provider.network(nil, nil, func(context.Context, payment.Refund) (string, error) { return "", errors.New("no answer") })
			if c.own {
				if _, err := s.refund(t, order.ID, reserved); err != nil {
					t.Fatal(err)
				}
			} else {
				reserved = 0
				if _, err := s.giveBack(t, order.ID, s.paidAgain(t, order, "second", order.Total())); err != nil {
					t.Fatal(err)
				}
			}
			in := ordering.SettleRefundInput{
				RefundID: testdb.Scan[domain.RefundID](t, s.DB, "SELECT id FROM refunds"), Note: "The provider's support says so", IdempotencyKey: ptr("settle"),
			}
			if c.made {
				in.Reference = ptr("re_1")
			}
			_, err := s.SettleRefund(t.Context(), s.caller, in)
			wantCode(t, err, domain.CodePaymentInProgress)
			s.later(25 * time.Hour)
			s.reconcile(t)
			_, err = s.clear(t, order.ID, "too early")
			wantCode(t, err, domain.CodePaymentInProgress)
			for _, replayed := range []bool{false, true} {
				if out, err := s.SettleRefund(t.Context(), s.caller, in); err != nil || out.Replayed != replayed {
					t.Errorf("replayed %v, %v", out.Replayed, err)
				}
			}
			other := in
			other.Note = "Something else"
			_, err = s.SettleRefund(t.Context(), s.caller, other)
			wantCode(t, err, domain.CodeIdempotencyKeyReused)
			other.IdempotencyKey = nil
			_, err = s.SettleRefund(t.Context(), s.caller, other)
			wantCode(t, err, domain.CodeNothingToDo)
			history := testdb.Scan[[]string](t, s.DB, "SELECT array_agg(event ORDER BY position DESC) FROM order_history")[:2]
			if slices.Reverse(history); !slices.Equal(history, c.want) {
				t.Errorf("the history ends with %q, want %q", history, c.want)
			}
			status := "SUCCEEDED"
			if !c.made {
				status, reserved = "FAILED", 0
			}
			s.wantRefunds(t, order.ID, reserved, "10000 "+status)
			if _, err := s.clear(t, order.ID, "done"); (err == nil) != (c.own || c.made) {
				t.Errorf("cleared: %v", err)
			}
		})
	}
}

// Two people settle one refund at once, one as made and one as not: the first holds the order, and the second
// reads what that one wrote. A reference is good for one refund.
func TestTwoSettleARefundAtOnce(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.provider.network(nil, nil, func(context.Context, payment.Refund) (string, error) { return "", errors.New("no answer") })
	order := s.in(t, domain.OrderPaid)
	for range 2 {
		if _, err := s.refund(t, order.ID, 100); err != nil {
			t.Fatal(err)
		}
	}
	s.later(25 * time.Hour)
	ids := testdb.Scan[[]domain.RefundID](t, s.DB, "SELECT array_agg(id ORDER BY id) FROM refunds")
	settle := func(id domain.RefundID, reference *string) domain.Code {
		_, err := s.SettleRefund(t.Context(), s.caller, ordering.SettleRefundInput{RefundID: id, Reference: reference, Note: "x"})
		return codeOf(err)
	}
	gate := s.Gate(t, "EndRefund")
	codes := make([]domain.Code, 2)
	wait := meanwhile(func() {
		together(2, func(i int) { codes[i] = settle(ids[0], []*string{ptr("re_1"), nil}[i]) })
	})
	gate.Await(t, 1)
	s.AwaitLockWaits(t, 1)
	gate.Open()
	wait()
	if codes[0]+codes[1] != domain.CodeNothingToDo {
		t.Errorf("got %q", codes)
	}
	if codes[0] == "" { // it was made, under the reference
		if code := settle(ids[1], ptr("re_1")); code != domain.CodeReferenceTaken {
			t.Errorf("the reference again: %q", code)
		}
	}
	if code := settle(ids[1], ptr("re_2")); code != "" {
		t.Errorf("another reference: %q", code)
	}
}
