package ordering_test

import (
	"context"
	"testing"

	"countersign/internal/domain"
	"countersign/internal/ordering"
	"countersign/internal/payment"
	"countersign/internal/testdb"
)

// While the provider takes its time no transaction is open and no lock is held: others go on with
// the same order, and the answer that comes at last finds what they did.
func TestNothingIsHeldDuringASlowCharge(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	called, answer := make(chan domain.OrderID), make(chan struct{})
	s.provider.network(func(ctx context.Context, c payment.Charge) (payment.Payment, error) {
		id, _ := domain.ParseID[domain.OrderID](c.Reference)
		called <- id
		<-answer
		return s.provider.Simulated.Charge(ctx, c)
	}, nil, nil)
	wait := meanwhile(func() {
		if out, err := s.Place(t.Context(), s.caller, s.input("one", payment.SimOK)); err != nil || out.Value.Status != domain.OrderPaid {
			t.Errorf("the placed order: %+v, %v", out, err)
		}
	})
	id := <-called
	s.wantNothingHeld(t)
	s.wantStatus(t, id, domain.OrderPending)
	if out, err := s.Place(t.Context(), s.caller, s.input("one", payment.SimOK)); err != nil || !out.Replayed || out.Value.Status != domain.OrderPending {
		t.Errorf("asked again meanwhile: %+v, %v", out, err)
	}
	_, err := s.Cancel(t.Context(), s.caller, ordering.CancelOrderInput{OrderID: id})
	wantCode(t, err, domain.CodePaymentInProgress)
	s.tell(t, "evt", id, domain.FactPaid, "another", "", 10000)
	s.wantStatus(t, id, domain.OrderPaid)
	close(answer)
	wait()
	s.wantHistory(t, id, "PLACED", "PAID", "REFUND_DUE")
}

// The same of a slow refund.
func TestNothingIsHeldDuringASlowRefund(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.in(t, domain.OrderPaid)
	called, answer := make(chan struct{}), make(chan struct{})
	s.provider.network(nil, nil, func(ctx context.Context, r payment.Refund) (string, error) {
		close(called)
		<-answer
		return s.provider.Simulated.Refund(ctx, r)
	})
	wait := meanwhile(func() {
		if out, err := s.Refund(t.Context(), s.caller, ordering.RefundOrderInput{OrderID: order.ID}); err != nil || out.Value.Status != domain.OrderRefunded {
			t.Errorf("the refunded order: %+v, %v", out.Value, err)
		}
	})
	<-called
	s.wantNothingHeld(t)
	if _, err := s.Fulfill(t.Context(), s.caller, ordering.FulfillOrderInput{OrderID: order.ID}); err != nil {
		t.Errorf("fulfilled meanwhile: %v", err)
	}
	close(answer)
	wait()
	s.wantHistory(t, order.ID, "PLACED", "PAID", "REFUND_REQUESTED", "FULFILLED", "REFUNDED")
}

// wantNothingHeld fails if a connection of the server's has a transaction, or a lock, open.
func (s *store) wantNothingHeld(t *testing.T) {
	t.Helper()
	if n := testdb.Scan[int](t, s.DB, `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = 'countersign' AND xact_start IS NOT NULL`); n != 0 {
		t.Errorf("%d transactions are open", n)
	}
	if n := testdb.Scan[int](t, s.DB, `SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
		WHERE a.datname = current_database() AND a.application_name = 'countersign'`); n != 0 {
		t.Errorf("%d locks are held", n)
	}
	if n := testdb.Scan[int](t, s.DB, `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = 'countersign'`); n == 0 {
		t.Error("no connection of the server's was looked at: the test proves nothing")
	}
}

// A client that hangs up while the provider is called does not stop an accepted order: it ends paid,
// and a refund ends given back.
func TestAClientThatHangsUpWhileTheProviderIsCalled(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	ctx, hangUp := context.WithCancel(t.Context())
	s.provider.network(func(ctx context.Context, c payment.Charge) (payment.Payment, error) {
		hangUp()
		return s.provider.Simulated.Charge(ctx, c)
	}, nil, nil)
	out, err := s.Place(ctx, s.caller, s.input("one", payment.SimOK))
	if err != nil || ctx.Err() == nil {
		t.Fatalf("the order was not finished: %v", err)
	}
	s.wantStatus(t, out.Value.ID, domain.OrderPaid)

	ctx, hangUpToo := context.WithCancel(t.Context())
	s.provider.network(nil, nil, func(ctx context.Context, r payment.Refund) (string, error) {
		hangUpToo()
		return s.provider.Simulated.Refund(ctx, r)
	})
	if _, err := s.Refund(ctx, s.caller, ordering.RefundOrderInput{OrderID: out.Value.ID}); err != nil {
		t.Errorf("the refund was not finished: %v", err)
	}
	s.wantStatus(t, out.Value.ID, domain.OrderRefunded)

	_, err = s.Place(ctx, s.caller, s.input("two", payment.SimOK)) // gone before it began: nothing happens
	wantCode(t, err, domain.CodeUnavailable)
	if n := s.count(t, "orders"); n != 1 {
		t.Errorf("%d orders", n)
	}
}

// Each method of the simulated provider, as a buyer sees it, and after the reconciler has been.
func TestEachMethodAsABuyerSeesIt(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	for method, want := range map[string]struct {
		first, then domain.OrderStatus
		attempt     domain.AttemptStatus
	}{
		payment.SimOK:               {domain.OrderPaid, domain.OrderPaid, domain.AttemptSucceeded},
		payment.SimSlow:             {domain.OrderPaid, domain.OrderPaid, domain.AttemptSucceeded},
		payment.SimDeclined:         {domain.OrderPending, domain.OrderPending, domain.AttemptFailed},
		payment.SimTimeoutCharged:   {domain.OrderPending, domain.OrderPaid, domain.AttemptSucceeded},
		payment.SimTimeoutUncharged: {domain.OrderPending, domain.OrderPaid, domain.AttemptSucceeded},
		payment.SimErrorThenOK:      {domain.OrderPending, domain.OrderPaid, domain.AttemptSucceeded},
		"cash":                      {domain.OrderPending, domain.OrderPending, domain.AttemptFailed},
	} {
		order := s.place(t, method)
		if order.Status != want.first {
			t.Errorf("%s: %s, want %s", method, order.Status, want.first)
		}
		s.reconcile(t)
		s.wantStatus(t, order.ID, want.then)
		if got := testdb.Scan[string](t, s.DB, "SELECT status FROM payment_attempts WHERE order_id = $1", order.ID); got != string(want.attempt) {
			t.Errorf("%s: the attempt is %s, want %s", method, got, want.attempt)
		}
	}
}
