package ordering_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"countersign/internal/domain"
	"countersign/internal/ordering"
	"countersign/internal/payment"
	"countersign/internal/testdb"
)

// Case 14: fifty requests with one key, on two servers, place one order and call the provider once;
// one of them did it, the others say that they are replays. As many as have a connection are past
// the look-up that finds nothing when the first inserts.
func TestCase14FiftyWithOneKey(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	servers := []*store{s, s.secondServer(t)}
	gate := s.Gate(t, "InsertOrder")
	ids := make([]domain.OrderID, 50)
	var made atomic.Int32
	wait := meanwhile(func() {
		together(50, func(i int) {
			out, err := servers[i%2].Place(t.Context(), s.caller, s.input("one", payment.SimOK))
			if err != nil {
				t.Errorf("request %d: %v", i, err)
				return
			}
			if ids[i] = out.Value.ID; !out.Replayed {
				made.Add(1)
			}
		})
	})
	gate.Await(t, 40)
	gate.Open()
	wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("two orders: %s and %s", ids[0], id)
		}
	}
	if n := servers[0].provider.charges.Load() + servers[1].provider.charges.Load(); n != 1 || made.Load() != 1 {
		t.Errorf("%d calls of the provider, %d requests say that they made it", n, made.Load())
	}
	s.wantStatus(t, ids[0], domain.OrderPaid)
	if n := s.count(t, "orders"); n != 1 || s.charged(t) != 10000 {
		t.Errorf("%d orders, %d charged", n, s.charged(t))
	}
}

// Case 15: the loser is paused between its look-up and what comes next, and the winner is done
// before it goes on: it returns the winner's order and calls no provider. What has changed about the
// product since, which would refuse a new order, does not matter.
func TestCase15TheLoserReturnsTheWinnersOrder(t *testing.T) {
	t.Parallel()
	for _, pausedBefore := range []string{"InsertOrder", "GetProducts"} {
		t.Run(pausedBefore, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			loses := s.secondServer(t)
			gate := s.Gate(t, pausedBefore)
			wait := meanwhile(func() {
				in := s.input("one", payment.SimOK)
				in.ExpectedTotalMinor = ptr(domain.Cents(10000))
				out, err := loses.Place(t.Context(), s.caller, in)
				if err != nil || !out.Replayed || out.Value.Status != domain.OrderPaid {
					t.Errorf("the loser: %+v, %v", out, err)
				}
			})
			gate.Await(t, 1)
			s.Before(pausedBefore, nil)
			out, err := s.Place(t.Context(), s.caller, s.input("one", payment.SimOK))
			if err != nil || out.Replayed {
				t.Errorf("the winner: %+v, %v", out, err)
			}
			if _, err := s.UpdateProduct(t.Context(), s.caller, ordering.UpdateProductInput{
				ProductID: s.product.ID, Version: s.product.UpdatedAt, UnitPriceMinor: ptr(domain.Cents(1)), Active: ptr(false),
			}); err != nil {
				t.Error(err)
			}
			gate.Open()
			wait()
			if n := loses.provider.charges.Load(); n != 0 || s.charged(t) != 10000 {
				t.Errorf("the loser called the provider %d times; %d are charged", n, s.charged(t))
			}
		})
	}
}

// Case 15's sister: the loser inserts while the winner has inserted and not committed: it waits for
// the index to know, and returns the winner's order.
func TestCase15TheLoserWaitsForTheWinner(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	loses := s.secondServer(t)
	gate := s.Gate(t, "commit")
	winner := meanwhile(func() { s.placeOnce(t, "one", false) })
	gate.Await(t, 1)
	loser := meanwhile(func() { loses.placeOnce(t, "one", true) })
	s.AwaitLockWaits(t, 1)
	gate.Open()
	winner()
	loser()
	if n := loses.provider.charges.Load(); n != 0 || s.count(t, "orders") != 1 {
		t.Errorf("the loser called the provider %d times; there are %d orders", n, s.count(t, "orders"))
	}
}

// placeOnce places under a key and expects it to be replayed or not.
func (s *store) placeOnce(t *testing.T, key string, replayed bool) {
	out, err := s.Place(t.Context(), s.caller, s.input(key, payment.SimOK))
	if err != nil || out.Replayed != replayed {
		t.Errorf("replayed %v, %v; want replayed %v", out.Replayed, err, replayed)
	}
}

// Case 16: the provider's answer and its webhook arrive together, two hundred times: one of them
// moves the order, the other finds it moved, and nothing is compensated.
func TestCase16AnswerAndWebhookTogether(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	webhooks := s.secondServer(t)
	var delivered sync.WaitGroup
	s.provider.network(func(ctx context.Context, c payment.Charge) (payment.Payment, error) {
		answer, err := s.provider.Simulated.Charge(ctx, c)
		id, _ := domain.ParseID[domain.OrderID](c.Reference)
		ready := make(chan struct{})
		delivered.Go(func() {
			close(ready)
			webhooks.tell(t, "evt "+c.Key, id, domain.FactPaid, answer.ID, "", answer.Amount.AmountMinor)
		})
		<-ready
		return answer, err
	}, nil, nil)
	together(8, func(int) {
		for range 25 {
			if order := s.place(t, payment.SimOK); order.Status != domain.OrderPaid {
				t.Errorf("the storefront sees %s", order.Status)
			}
		}
	})
	delivered.Wait()
	s.want200Paid(t)
}

func (s *store) want200Paid(t *testing.T) {
	t.Helper()
	if n := testdb.Scan[int](t, s.DB, `SELECT count(*) FROM (
		SELECT FROM order_history GROUP BY order_id HAVING array_agg(event ORDER BY position) = '{PLACED,PAID}') AS h`); n != 200 {
		t.Errorf("%d of 200 orders were placed and paid, and nothing else", n)
	}
	if n := testdb.Scan[int](t, s.DB, "SELECT count(*) FROM captures WHERE state = 'APPLIED'"); n != 200 || s.count(t, "captures") != 200 {
		t.Errorf("%d captures apply, of %d", n, s.count(t, "captures"))
	}
}

// Case 16, forced: answer and webhook both stand before the order's lock.
func TestCase16BothBeforeTheLock(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	var id domain.OrderID
	gate := s.Gate(t, "LockOrder")
	var webhook func()
	s.provider.network(func(ctx context.Context, c payment.Charge) (payment.Payment, error) {
		answer, err := s.provider.Simulated.Charge(ctx, c)
		id, _ = domain.ParseID[domain.OrderID](c.Reference)
		webhook = meanwhile(func() { s.tell(t, "evt", id, domain.FactPaid, answer.ID, "", 10000) })
		return answer, err
	}, nil, nil)
	placed := meanwhile(func() { s.place(t, payment.SimOK) })
	gate.Await(t, 2)
	gate.Open()
	placed()
	webhook()
	s.wantHistory(t, id, "PLACED", "PAID")
}

// Case 17: two payments of one order succeed at once: one pays it, the other is a refund due.
func TestCase17TwoPaymentsOfOneOrder(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.place(t, payment.SimTimeoutUncharged)
	gate := s.Gate(t, "LockOrder")
	wait := meanwhile(func() {
		together(2, func(i int) {
			s.tell(t, []string{"1", "2"}[i], order.ID, domain.FactPaid, []string{"A", "B"}[i], "", 10000)
		})
	})
	gate.Await(t, 2)
	gate.Open()
	wait()
	s.wantStatus(t, order.ID, domain.OrderPaid)
	s.wantHistory(t, order.ID, "PLACED", "PAID", "REFUND_DUE")
	states := map[string]int{}
	for _, c := range s.captures(t, order.ID) {
		states[c[2:]]++
	}
	if states["APPLIED"] != 1 || states["REFUND_DUE"] != 1 {
		t.Errorf("the captures are %v", s.captures(t, order.ID))
	}
}

// Case 18: one in stock, twenty buyers who have all placed and not taken: one gets it, the others
// are refused before any charge, and leave no order. Proves TakeStock's count, the guard.
func TestCase18OneInStock(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.product = s.newProduct(t, "KING", s.product.UnitPrice(), ptr(int64(1)))
	gate := s.Gate(t, "TakeStock")
	var sold, refused atomic.Int32
	wait := meanwhile(func() {
		together(20, func(i int) {
			out, err := s.Place(t.Context(), s.caller, s.input(string(rune('a'+i)), payment.SimOK))
			switch {
			case err == nil && out.Value.Status == domain.OrderPaid:
				sold.Add(1)
			case codeOf(err) == domain.CodeInsufficientStock:
				refused.Add(1)
			default:
				t.Errorf("buyer %d: %+v, %v", i, out, err)
			}
		})
	})
	gate.Await(t, 20)
	gate.Open()
	wait()
	if sold.Load() != 1 || refused.Load() != 19 || s.provider.charges.Load() != 1 || s.count(t, "orders") != 1 {
		t.Errorf("%d sold, %d refused, %d calls of the provider, %d orders", sold.Load(), refused.Load(), s.provider.charges.Load(), s.count(t, "orders"))
	}
	if left := testdb.Scan[int](t, s.DB, "SELECT available FROM product_stock"); left != 0 {
		t.Errorf("%d are left", left)
	}
}

// Case 18's sister: carts that take the same products in opposite order cannot hold each other up.
func TestCase18OppositeCarts(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	a, b := s.newProduct(t, "A", s.product.UnitPrice(), ptr(int64(40))), s.newProduct(t, "B", s.product.UnitPrice(), ptr(int64(40)))
	together(40, func(i int) {
		in := s.input(string(rune('a'+i)), payment.SimOK)
		in.Items = []domain.OrderItemInput{{ProductID: a.ID, Quantity: 1}, {ProductID: b.ID, Quantity: 1}}
		if i%2 == 1 {
			in.Items[0], in.Items[1] = in.Items[1], in.Items[0]
		}
		if _, err := s.Place(t.Context(), s.caller, in); err != nil {
			t.Errorf("cart %d: %v", i, err)
		}
	})
	if left := testdb.Scan[int](t, s.DB, "SELECT sum(available) FROM product_stock"); left != 0 {
		t.Errorf("%d are left", left)
	}
	if n := testdb.Scan[int](t, s.DB, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"); n != 0 {
		t.Errorf("%d deadlocks", n)
	}
}
