package payment_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"countersign/internal/domain"
	"countersign/internal/payment"
	"countersign/internal/testdb"
	"countersign/internal/txn"
)

// simulated are two instances of the provider, as two servers have them: what it knows they share.
func simulated(t *testing.T) (one, other *payment.Simulated, d *testdb.DB) {
	t.Helper()
	d = testdb.New(t)
	instance := func() *payment.Simulated {
		return payment.NewSimulated(txn.New(d.NewPool(t, 0), txn.Settings{}), 20*time.Millisecond, nil)
	}
	return instance(), instance(), d
}

func euros(amount domain.Cents) domain.Money {
	return domain.Money{AmountMinor: amount, Currency: "EUR"}
}

func charge(key, method string) payment.Charge {
	return payment.Charge{Key: key, Reference: "ord_1", Method: method, Amount: euros(10000)}
}

// Each method, as its name says: what the first call answers, what a look-up finds then, on another
// server, and what a second call under the key answers.
func TestEachMethod(t *testing.T) {
	t.Parallel()
	one, other, _ := simulated(t)
	for _, c := range []struct{ method, first, found, second string }{
		{payment.SimOK, "charged", "charged", "charged"},
		{payment.SimSlow, "charged", "charged", "charged"},
		{payment.SimDeclined, "card_declined", "card_declined", "card_declined"},
		{payment.SimTimeoutCharged, "timeout", "charged", "charged"},
		{payment.SimTimeoutUncharged, "timeout", "not found", "charged"},
		{payment.SimErrorThenOK, "error", "not found", "charged"},
		{"cash", "unknown_method", "not found", "unknown_method"},
	} {
		first := said(one.Charge(t.Context(), charge(c.method, c.method)))
		found := said(other.Find(t.Context(), c.method))
		second := said(other.Charge(t.Context(), charge(c.method, c.method)))
		if first != c.first || found != c.found || second != c.second {
			t.Errorf("%s: %s, then %s, then %s; want %s, %s, %s", c.method, first, found, second, c.first, c.found, c.second)
		}
	}
	if got := said(one.Find(t.Context(), "never heard of")); got != "not found" {
		t.Errorf("an unknown key: %s", got)
	}
	if len(payment.SimMethods) != 6 || one.DefaultMethod() != payment.SimOK || one.Name() != "simulated" || one.KeyWindow() != 24*time.Hour {
		t.Error("the provider says something else of itself")
	}
}

// said is an answer in a word.
func said(p payment.Payment, err error) string {
	switch {
	case errors.Is(err, payment.ErrNotFound):
		return "not found"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case err != nil:
		return "error"
	case p.Declined != "":
		return p.Declined
	case p.Amount != euros(10000) || p.ID == "":
		return fmt.Sprintf("charged wrongly: %+v", p)
	}
	return "charged"
}

// However often, and from wherever, it is called under a key, it charges once.
func TestAKeyChargesOnce(t *testing.T) {
	t.Parallel()
	one, other, d := simulated(t)
	var wg sync.WaitGroup
	ids := make([]string, 20)
	for i := range ids {
		wg.Go(func() {
			p, err := []*payment.Simulated{one, other}[i%2].Charge(t.Context(), charge("key", payment.SimOK))
			if err != nil {
				t.Errorf("call %d: %v", i, err)
			}
			ids[i] = p.ID
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("two payments: %s and %s", ids[0], id)
		}
	}
	if n := testdb.Scan[int](t, d, "SELECT count(*) FROM ops.simulated_payments"); n != 1 {
		t.Errorf("%d payments", n)
	}
}

// A key that was used for one charge is refused for another, and the first one stands.
func TestAKeyIsGoodForOneCharge(t *testing.T) {
	t.Parallel()
	one, other, _ := simulated(t)
	if got := said(one.Charge(t.Context(), charge("key", payment.SimOK))); got != "charged" {
		t.Fatal(got)
	}
	for name, change := range map[string]func(*payment.Charge){
		"another amount":    func(c *payment.Charge) { c.Amount.AmountMinor = 1 },
		"another currency":  func(c *payment.Charge) { c.Amount.Currency = "JPY" },
		"another reference": func(c *payment.Charge) { c.Reference = "ord_2" },
	} {
		c := charge("key", payment.SimOK)
		change(&c)
		if got := said(other.Charge(t.Context(), c)); got != "error" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := said(other.Find(t.Context(), "key")); got != "charged" {
		t.Errorf("afterwards: %s", got)
	}
}

// A caller that gives up on a slow charge before it was made gets no charge.
func TestASlowChargeThatIsGivenUp(t *testing.T) {
	t.Parallel()
	one, _, _ := simulated(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := one.Charge(ctx, charge("key", payment.SimSlow)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if got := said(one.Find(t.Context(), "key")); got != "not found" {
		t.Errorf("afterwards: %s", got)
	}
}

// A refund gives back once per key, what was charged and no more.
func TestRefunds(t *testing.T) {
	t.Parallel()
	one, other, d := simulated(t)
	paid, err := one.Charge(t.Context(), charge("key", payment.SimOK))
	if err != nil {
		t.Fatal(err)
	}
	declined, err := one.Charge(t.Context(), charge("declined", payment.SimDeclined))
	if err != nil {
		t.Fatal(err)
	}
	first, err := one.Refund(t.Context(), payment.Refund{Key: "a", PaymentID: paid.ID, Amount: euros(6000)})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := other.Refund(t.Context(), payment.Refund{Key: "a", PaymentID: paid.ID, Amount: euros(6000)}); err != nil || again != first {
		t.Errorf("the same key: %s, %v; want %s", again, err, first)
	}
	if _, err := other.Refund(t.Context(), payment.Refund{Key: "a", PaymentID: paid.ID, Amount: euros(1)}); err == nil || errors.Is(err, payment.ErrRefused) {
		t.Errorf("the same key for another refund: %v", err)
	}
	for name, r := range map[string]payment.Refund{
		"more than is left":  {Key: "b", PaymentID: paid.ID, Amount: euros(4001)},
		"an unknown payment": {Key: "c", PaymentID: "sim_none", Amount: euros(1)},
		"a declined payment": {Key: "d", PaymentID: declined.ID, Amount: euros(1)},
		"another currency":   {Key: "e", PaymentID: paid.ID, Amount: domain.Money{AmountMinor: 1, Currency: "JPY"}},
		"nothing":            {Key: "f", PaymentID: paid.ID, Amount: euros(0)},
	} {
		if _, err := one.Refund(t.Context(), r); !errors.Is(err, payment.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if rest, err := one.Refund(t.Context(), payment.Refund{Key: "g", PaymentID: paid.ID, Amount: euros(4000)}); err != nil || rest == first {
		t.Errorf("the rest: %s, %v", rest, err)
	}
	if sum := testdb.Scan[int](t, d, "SELECT sum(amount_minor) FROM ops.simulated_refunds"); sum != 10000 {
		t.Errorf("%d were given back", sum)
	}
}

// Proves the lock of EverySimulatedPaymentByID: of two refunds that together exceed the charge, the
// second waits until the first is made, and is refused.
func TestTwoRefundsAtOnce(t *testing.T) {
	t.Parallel()
	one, other, d := simulated(t)
	paid, err := one.Charge(t.Context(), charge("key", payment.SimOK))
	if err != nil {
		t.Fatal(err)
	}
	gate := d.Gate(t, "EverySimulatedRefundOfPayment")
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i, p := range []*payment.Simulated{one, other} {
		wg.Go(func() {
			_, errs[i] = p.Refund(t.Context(), payment.Refund{Key: fmt.Sprint(i), PaymentID: paid.ID, Amount: euros(6000)})
		})
	}
	gate.Await(t, 1)
	d.AwaitLockWaits(t, 1)
	gate.Open()
	wg.Wait()
	if errors.Is(errs[0], payment.ErrRefused) == errors.Is(errs[1], payment.ErrRefused) {
		t.Errorf("got %v and %v, want one refused", errs[0], errs[1])
	}
	if sum := testdb.Scan[int](t, d, "SELECT sum(amount_minor) FROM ops.simulated_refunds"); sum != 6000 {
		t.Errorf("%d were given back", sum)
	}
}
