package ordering_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"countersign/internal/domain"
	"countersign/internal/ordering"
	"countersign/internal/payment"
	"countersign/internal/testdb"
	"countersign/sqlc"
)

// paidAgain has the provider take an order's money, or another amount, by a payment that no attempt of
// ours asked for, and tell of it.
func (s *store) paidAgain(t *testing.T, order *sqlc.Order, name string, amount domain.Money) (paymentID string) {
	t.Helper()
	p, err := s.provider.Simulated.Charge(t.Context(), payment.Charge{Key: name, Reference: "elsewhere", Method: payment.SimOK, Amount: amount})
	if err != nil {
		t.Fatal(err)
	}
	e := webhook(name, order.ID, domain.FactPaid, p.ID, "", amount.AmountMinor)
	e.Fact.Amount = amount
	if err := s.Receive(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	return p.ID
}

func (s *store) giveBack(t *testing.T, id domain.OrderID, paymentID string) (outcome, error) {
	t.Helper()
	return s.ReturnPayment(t.Context(), s.caller, ordering.ReturnPaymentInput{OrderID: id, ProviderPaymentID: paymentID})
}

// A second payment of one order is listed, given back once, however often that is asked for, and then
// nobody has to look any more.
func TestAPaymentTooManyIsGivenBack(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order, other := s.in(t, domain.OrderPaid), s.in(t, domain.OrderPaid)
	second := s.paidAgain(t, order, "second", order.Total())
	s.wantToLookAt(t, order.ID)
	s.healthy(t)
	_, err := s.clear(t, order.ID, "seen")
	wantCode(t, err, domain.CodeMoneyOwed)

	in := ordering.ReturnPaymentInput{OrderID: order.ID, ProviderPaymentID: second, IdempotencyKey: ptr("return")}
	for _, replayed := range []bool{false, true} {
		out, err := s.ReturnPayment(t.Context(), s.caller, in)
		if err != nil || out.Replayed != replayed || out.Value.Status != domain.OrderPaid || out.Value.RefundedMinor != 0 || out.Value.Attention != nil {
			t.Errorf("got %+v, replayed %v, %v", out.Value, out.Replayed, err)
		}
	}
	for name, paymentID := range map[string]string{"once more": second, "what pays": s.payment(t, order.ID)} {
		if _, err := s.giveBack(t, order.ID, paymentID); codeOf(err) != domain.CodeNothingToDo {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = s.ReturnPayment(t.Context(), s.caller, ordering.ReturnPaymentInput{OrderID: order.ID, ProviderPaymentID: second, Reference: ptr("re_1 ")})
	wantCode(t, err, domain.CodeBadInput)
	for name, paymentID := range map[string]string{"another order's": s.payment(t, other.ID), "nobody's": "pay_none"} {
		if _, err := s.giveBack(t, order.ID, paymentID); codeOf(err) != domain.CodeNotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := s.provider.refunds.Load(); n != 1 || s.refunded(t) != 10000 {
		t.Errorf("the provider was asked %d times and gave %d back", n, s.refunded(t))
	}
	if got := s.captures(t, order.ID); !slices.ContainsFunc(got, func(c string) bool { return strings.Contains(c, "RETURNED") }) {
		t.Errorf("the captures are %q", got)
	}
	s.wantHistory(t, order.ID, "PLACED", "PAID", "REFUND_DUE", "REFUND_REQUESTED", "REFUND_SETTLED")
	s.wantToLookAt(t)
	// The order's own money is as it was, and can go back too.
	if out, err := s.refund(t, order.ID, 10000); err != nil || out.Value.Status != domain.OrderRefunded {
		t.Errorf("the order's own refund: %+v, %v", out.Value, err)
	}
}

// Two people give the same payment back at once, under keys of their own: the order is held by the
// first, and the second reads what that one wrote once it holds it. (Without the lock it is the version
// token that refuses it: TestTheVersionTokenOfAMove.)
func TestTwoGiveAPaymentBackAtOnce(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.in(t, domain.OrderPaid)
	second := s.paidAgain(t, order, "second", order.Total())
	gate := s.Gate(t, "InsertRefund")
	codes := make([]domain.Code, 2)
	wait := meanwhile(func() {
		together(2, func(i int) {
			_, err := s.giveBack(t, order.ID, second)
			codes[i] = codeOf(err)
		})
	})
	gate.Await(t, 1)
	s.AwaitLockWaits(t, 1)
	gate.Open()
	wait()
	if codes[0]+codes[1] != domain.CodePaymentInProgress {
		t.Errorf("got %q", codes)
	}
	s.wantRefunds(t, order.ID, 0, "10000 SUCCEEDED")
	if s.refunded(t) != 10000 {
		t.Errorf("%d were given back", s.refunded(t))
	}
}

// The answer is lost, or the server dies before it asks: the reconciler asks under the same key, in the
// currency of the payment, which is not the order's. A person still has to look, since it was flagged.
func TestGivingBackWhatWasFlagged(t *testing.T) {
	t.Parallel()
	for name, network := range map[string]func(s *store) func(context.Context, payment.Refund) (string, error){
		"the answer is lost": func(s *store) func(context.Context, payment.Refund) (string, error) { return s.lose },
		"it never arrives": func(*store) func(context.Context, payment.Refund) (string, error) {
			return func(context.Context, payment.Refund) (string, error) { return "", errors.New("no answer") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			order := s.in(t, domain.OrderPending)
			dollars := s.paidAgain(t, order, "dollars", domain.Money{AmountMinor: 7700, Currency: "USD"})
			s.provider.network(nil, nil, network(s))
			if out, err := s.giveBack(t, order.ID, dollars); err != nil || out.Value.Status != domain.OrderPending {
				t.Errorf("unknown: %+v, %v", out.Value, err)
			}
			s.wantRefunds(t, order.ID, 0, "7700 PENDING")
			_, err := s.giveBack(t, order.ID, dollars)
			wantCode(t, err, domain.CodePaymentInProgress)
			_, err = s.clear(t, order.ID, "seen")
			wantCode(t, err, domain.CodePaymentInProgress)
			s.provider.network(nil, nil, nil)
			for _, want := range []int{1, 0} {
				if done := s.reconcile(t); done.Refunds != want {
					t.Errorf("reconciled: %+v", done)
				}
			}
			s.wantRefunds(t, order.ID, 0, "7700 SUCCEEDED")
			if s.refunded(t) != 7700 {
				t.Errorf("%d were given back", s.refunded(t))
			}
			shown, err := s.RefundsOf(t.Context(), s.caller, []*sqlc.Order{order})
			if want := (domain.Money{AmountMinor: 7700, Currency: "USD"}); err != nil || len(shown[0]) != 1 || shown[0][0].Amount() != want {
				t.Errorf("shown %+v, %v", shown, err)
			}
			s.wantToLookAt(t, order.ID)
			if out, err := s.clear(t, order.ID, "paid in dollars, given back"); err != nil || out.Value.Attention != nil {
				t.Errorf("cleared: %+v, %v", out.Value, err)
			}
			s.wantToLookAt(t)
		})
	}
}

// The provider refuses: the payment stays due, somebody still has to look, and it can be asked again.
func TestThePaymentThatTheProviderKeeps(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.in(t, domain.OrderPaid)
	second := s.paidAgain(t, order, "second", order.Total())
	s.provider.network(nil, nil, func(context.Context, payment.Refund) (string, error) { return "", payment.ErrRefused })
	if out, err := s.giveBack(t, order.ID, second); err != nil || out.Value.Attention == nil || out.Value.RefundedMinor != 0 {
		t.Errorf("refused: %+v, %v", out.Value, err)
	}
	s.wantRefunds(t, order.ID, 0, "10000 FAILED")
	s.wantToLookAt(t, order.ID)
	s.provider.network(nil, nil, nil)
	if _, err := s.giveBack(t, order.ID, second); err != nil {
		t.Error(err)
	}
	s.wantRefunds(t, order.ID, 0, "10000 FAILED, 10000 SUCCEEDED")
	s.wantHistory(t, order.ID, "PLACED", "PAID", "REFUND_DUE", "REFUND_REQUESTED", "REFUND_FAILED", "REFUND_REQUESTED", "REFUND_SETTLED")
	s.wantToLookAt(t)
}

// The webhook of what is given back is faster than the answer, and is taken for it: a refund of the order's
// own money that is awaited too, of the same amount, is another one.
func TestTheWebhookOfAPaymentGivenBack(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.in(t, domain.OrderPaid)
	second := s.paidAgain(t, order, "second", order.Total())
	s.provider.network(nil, nil, s.lose)
	if _, err := s.refund(t, order.ID, 10000); err != nil {
		t.Fatal(err)
	}
	s.provider.network(nil, nil, func(ctx context.Context, r payment.Refund) (string, error) {
		id, err := s.provider.Simulated.Refund(ctx, r)
		s.tell(t, "returned", order.ID, domain.FactRefunded, r.PaymentID, id, r.Amount.AmountMinor)
		return id, err
	})
	if _, err := s.giveBack(t, order.ID, second); err != nil {
		t.Error(err)
	}
	s.wantRefunds(t, order.ID, 10000, "10000 PENDING, 10000 SUCCEEDED")
	s.wantStatus(t, order.ID, domain.OrderPaid)
	s.provider.network(nil, nil, nil)
	s.reconcile(t)
	s.wantRefunds(t, order.ID, 10000, "10000 SUCCEEDED, 10000 SUCCEEDED")
	s.wantStatus(t, order.ID, domain.OrderRefunded)
	s.wantToLookAt(t)
}

// A refund of the order's own money and a payment that is given back, of one amount, both without an
// answer: a webhook says by its payment which of them it is about, and nothing has to wait.
func TestTheTwoRefundsOfTwoPayments(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.in(t, domain.OrderPaid)
	second := s.paidAgain(t, order, "second", order.Total())
	s.provider.network(nil, nil, s.lose)
	if _, err := s.refund(t, order.ID, 10000); err != nil {
		t.Fatal(err)
	}
	if _, err := s.giveBack(t, order.ID, second); err != nil {
		t.Fatal(err)
	}
	own := s.payment(t, order.ID)
	refund := testdb.Scan[string](t, s.DB, "SELECT refund_id FROM ops.simulated_refunds WHERE payment_id = $1", own)
	s.tell(t, "own", order.ID, domain.FactRefunded, own, refund, 10000)
	s.wantStatus(t, order.ID, domain.OrderRefunded)
	s.wantRefunds(t, order.ID, 10000, "10000 SUCCEEDED, 10000 PENDING")
	s.provider.network(nil, nil, nil)
	s.reconcile(t)
	s.wantRefunds(t, order.ID, 10000, "10000 SUCCEEDED, 10000 SUCCEEDED")
	s.wantToLookAt(t)
}

// A part was given back elsewhere: what is left goes back, and no more.
func TestTheRestOfAPaymentIsGivenBack(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.in(t, domain.OrderPaid)
	second := s.paidAgain(t, order, "second", order.Total())
	s.tell(t, "part", order.ID, domain.FactRefunded, second, "elsewhere", 4000)
	s.wantToLookAt(t, order.ID)
	if _, err := s.giveBack(t, order.ID, second); err != nil {
		t.Error(err)
	}
	s.wantRefunds(t, order.ID, 0, "4000 SUCCEEDED, 6000 SUCCEEDED")
	s.wantToLookAt(t)
}

// What the provider will not give back goes another way, and is recorded: the provider is not asked, and what
// it reports under that reference later changes nothing.
func TestAPaymentThatWentBackAnotherWay(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.in(t, domain.OrderPaid)
	s.tell(t, "unknown to the provider", order.ID, domain.FactPaid, "elsewhere", "", 10000)
	if _, err := s.giveBack(t, order.ID, "elsewhere"); err != nil {
		t.Fatal(err)
	}
	s.wantRefunds(t, order.ID, 0, "10000 FAILED")
	in := ordering.ReturnPaymentInput{OrderID: order.ID, ProviderPaymentID: "elsewhere", Reference: ptr("transfer 7"), IdempotencyKey: ptr("transfer")}
	for _, replayed := range []bool{false, true} {
		if out, err := s.ReturnPayment(t.Context(), s.caller, in); err != nil || out.Replayed != replayed || out.Value.Attention != nil {
			t.Errorf("got %+v, replayed %v, %v", out.Value, out.Replayed, err)
		}
	}
	s.tell(t, "reported", order.ID, domain.FactRefunded, "elsewhere", "transfer 7", 10000)
	s.wantRefunds(t, order.ID, 0, "10000 FAILED, 10000 SUCCEEDED")
	s.wantHistory(t, order.ID, "PLACED", "PAID", "REFUND_DUE", "REFUND_REQUESTED", "REFUND_FAILED", "REFUND_SETTLED")
	if n := s.provider.refunds.Load(); n != 1 {
		t.Errorf("the provider was asked %d times", n)
	}
	third := s.paidAgain(t, order, "third", order.Total())
	_, err := s.ReturnPayment(t.Context(), s.caller, ordering.ReturnPaymentInput{OrderID: order.ID, ProviderPaymentID: third, Reference: ptr("transfer 7")})
	wantCode(t, err, domain.CodeReferenceTaken)
}

// A payment was given back by others in parts, while the answer to our own refund of it was awaited: it went
// back twice, and a person hears of it.
func TestAPaymentThatWentBackTwice(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.in(t, domain.OrderPaid)
	second := s.paidAgain(t, order, "second", order.Total())
	s.provider.network(nil, nil, s.lose)
	if _, err := s.giveBack(t, order.ID, second); err != nil {
		t.Fatal(err)
	}
	s.tell(t, "one part", order.ID, domain.FactRefunded, second, "x1", 4000)
	s.tell(t, "the other", order.ID, domain.FactRefunded, second, "x2", 6000)
	s.wantToLookAt(t, order.ID) // an answer is awaited still
	s.provider.network(nil, nil, nil)
	s.reconcile(t)
	s.wantRefunds(t, order.ID, 0, "10000 SUCCEEDED, 4000 SUCCEEDED, 6000 SUCCEEDED")
	if got := s.order(t, order.ID).Attention; got == nil || !strings.Contains(*got, "second time") {
		t.Errorf("the reason is %v", got)
	}
	if _, err := s.clear(t, order.ID, "the provider takes it back"); err != nil {
		t.Error(err)
	}
}

// Money that another provider took is not asked back from this one; where it went back is recorded.
func TestAPaymentOfAnotherProvider(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.in(t, domain.OrderPaid)
	second := s.paidAgain(t, order, "second", order.Total())
	s.Exec(t, "UPDATE captures SET provider = 'other' WHERE provider_payment_id = $1", second)
	_, err := s.giveBack(t, order.ID, second)
	wantCode(t, err, domain.CodeBadInput)
	s.wantRefunds(t, order.ID, 0, "")
	in := ordering.ReturnPaymentInput{OrderID: order.ID, ProviderPaymentID: second, Reference: ptr("re_9")}
	if out, err := s.ReturnPayment(t.Context(), s.caller, in); err != nil || out.Value.Attention != nil {
		t.Errorf("recorded: %+v, %v", out.Value, err)
	}
	s.Exec(t, "UPDATE captures SET provider = 'other' WHERE provider_payment_id <> $1", second)
	_, err = s.refund(t, order.ID, 100)
	wantCode(t, err, domain.CodeBadInput)
	if n := s.provider.refunds.Load(); n != 0 {
		t.Errorf("the provider was asked %d times", n)
	}
}

// Others gave a payment back, and the provider refuses to do it once more: nobody has to look any more.
func TestAPaymentThatOthersGaveBack(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.in(t, domain.OrderPaid)
	second := s.paidAgain(t, order, "second", order.Total())
	s.provider.network(nil, nil, func(context.Context, payment.Refund) (string, error) { return "", errors.New("no answer") })
	if _, err := s.giveBack(t, order.ID, second); err != nil {
		t.Fatal(err)
	}
	s.tell(t, "one part", order.ID, domain.FactRefunded, second, "x1", 4000)
	s.tell(t, "the other", order.ID, domain.FactRefunded, second, "x2", 6000)
	s.wantToLookAt(t, order.ID)
	s.provider.network(nil, nil, func(context.Context, payment.Refund) (string, error) { return "", payment.ErrRefused })
	s.reconcile(t)
	s.wantRefunds(t, order.ID, 0, "10000 FAILED, 4000 SUCCEEDED, 6000 SUCCEEDED")
	s.wantToLookAt(t)
}
