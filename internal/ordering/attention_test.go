package ordering_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/internal/domain"
	"countersign/internal/ordering"
	"countersign/internal/paging"
	"countersign/internal/payment"
	"countersign/internal/testdb"
	"countersign/sqlc"
)

func (s *store) clear(t *testing.T, id domain.OrderID, note string) (outcome, error) {
	t.Helper()
	return s.ClearAttention(t.Context(), s.caller, ordering.ClearAttentionInput{OrderID: id, Note: note})
}

// wantToLookAt fails unless the list has exactly these orders.
func (s *store) wantToLookAt(t *testing.T, want ...domain.OrderID) {
	t.Helper()
	highest := domain.OrderID{}
	for i := range highest {
		highest[i] = 0xff
	}
	page, err := s.ListToLookAt(t.Context(), s.caller, paging.Request[domain.OrderID]{Before: highest, Size: 100})
	if err != nil {
		t.Fatal(err)
	}
	if got := paging.IDs(page.Rows, func(o *sqlc.Order) domain.OrderID { return o.ID }); !slices.Equal(got, want) {
		t.Errorf("a person has to look at %v, want %v", got, want)
	}
}

// A graver reason is not replaced by money that is due, and stays until a person clears it.
func TestAGraverReasonStays(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.in(t, domain.OrderPaid)
	s.tell(t, "strange", order.ID, "payment.disputed", "x", "", 1)
	reason := s.order(t, order.ID).Attention
	second := s.paidAgain(t, order, "second", order.Total())
	if _, err := s.giveBack(t, order.ID, second); err != nil {
		t.Error(err)
	}
	if now := s.order(t, order.ID).Attention; reason == nil || now == nil || *now != *reason {
		t.Errorf("the reason is %v, was %v", now, reason)
	}
	in := ordering.ClearAttentionInput{OrderID: order.ID, Note: "The provider has explained it", IdempotencyKey: ptr("clear")}
	for _, replayed := range []bool{false, true} {
		if out, err := s.ClearAttention(t.Context(), s.caller, in); err != nil || out.Replayed != replayed || out.Value.Attention != nil {
			t.Errorf("got %+v, replayed %v, %v", out.Value, out.Replayed, err)
		}
	}
	_, err := s.clear(t, order.ID, " ")
	wantCode(t, err, domain.CodeBadInput)
	_, err = s.clear(t, order.ID, "again")
	wantCode(t, err, domain.CodeNothingToDo)
	if got := testdb.Scan[string](t, s.DB, "SELECT detail FROM order_history WHERE order_id = $1 AND event = 'ATTENTION_CLEARED'", order.ID); got != in.Note {
		t.Errorf("the note is %q", got)
	}
	s.tell(t, "again", order.ID, "payment.disputed", "y", "", 1) // another matter
	s.wantToLookAt(t, order.ID)
}

// A capture of nothing asks for nobody, and one that is flagged still does, until a person says that it was
// nothing: no second payment is taken before.
func TestACaptureOfNothing(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	paid := s.in(t, domain.OrderPaid)
	s.tell(t, "nothing due", paid.ID, domain.FactPaid, "zero", "", 0)
	s.wantToLookAt(t)

	order := s.place(t, payment.SimTimeoutCharged)
	s.tell(t, "nothing paid", order.ID, domain.FactPaid, "first", "", 0)
	s.wantToLookAt(t, order.ID)
	retry := ordering.RetryPaymentInput{OrderID: order.ID, PaymentMethod: ptr(payment.SimOK)}
	_, err := s.RetryPayment(t.Context(), s.caller, retry)
	wantCode(t, err, domain.CodePaymentInProgress)
	if _, err := s.clear(t, order.ID, "it was nothing"); err != nil {
		t.Fatal(err)
	}
	if out, err := s.RetryPayment(t.Context(), s.caller, retry); err != nil || out.Value.Status != domain.OrderPaid {
		t.Errorf("after that: %+v, %v", out.Value, err)
	}
}

// An order from before money that is due asked for a person does so after the next reconciliation, once.
func TestTheReconcilerAsksForAPerson(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.in(t, domain.OrderPaid)
	s.paidAgain(t, order, "second", order.Total())
	s.Exec(t, "UPDATE orders SET attention = NULL")
	if broken := s.broken(t); len(broken) != 1 || !strings.Contains(broken[0], "nobody is asked to look") {
		t.Errorf("the doctor finds %q", broken)
	}
	for _, want := range []int{1, 0} {
		if done := s.reconcile(t); done.Flagged != want {
			t.Errorf("reconciled: %+v", done)
		}
	}
	s.wantToLookAt(t, order.ID)
}

// A customer sees why its payment failed, and no word of the staff.
func TestNotesAreNotForCustomers(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.place(t, payment.SimDeclined)
	s.tell(t, "strange", order.ID, "payment.disputed", "x", "", 1)
	if _, err := s.clear(t, order.ID, "a secret"); err != nil {
		t.Fatal(err)
	}
	details := func(role domain.Role) (out []string) {
		caller := s.caller
		caller.Role, caller.CustomerID = role, order.CustomerID
		history, err := s.HistoryOf(t.Context(), caller, []*sqlc.Order{order})
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range history[0] {
			if step.Detail != nil {
				out = append(out, step.Event)
			}
		}
		return out
	}
	if got := details(domain.RoleCustomer); !slices.Equal(got, []string{"PAYMENT_FAILED"}) {
		t.Errorf("a customer sees details of %q", got)
	}
	if got := details(domain.RoleAdmin); !slices.Equal(got, []string{"PAYMENT_FAILED", "FLAGGED", "ATTENTION_CLEARED"}) {
		t.Errorf("an admin sees details of %q", got)
	}
}

// A payment that nobody knows anything of any more is not cleared away: it is cancelled first.
func TestAnUnknownPaymentIsNotClearedAway(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.place(t, payment.SimTimeoutUncharged)
	s.later(25 * time.Hour)
	s.reconcile(t)
	s.wantToLookAt(t, order.ID)
	_, err := s.clear(t, order.ID, "seen")
	wantCode(t, err, domain.CodePaymentInProgress)
	if _, err := s.Cancel(t.Context(), s.caller, ordering.CancelOrderInput{OrderID: order.ID}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.clear(t, order.ID, "given up"); err != nil {
		t.Error(err)
	}
	s.reconcile(t)
	s.wantToLookAt(t)
}
