package ordering_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"countersign/internal/domain"
	"countersign/internal/ordering"
	"countersign/internal/payment"
	"countersign/internal/testdb"
	"countersign/internal/testdb/pgproxy"
	"countersign/internal/txn"
)

// behind is the same store on a server whose connections to the database can be cut; the provider's
// are its own.
func (s *store) behind(t *testing.T) (*store, *pgproxy.Proxy) {
	t.Helper()
	proxy := pgproxy.New(t, s.URL)
	other := *s
	other.db = txn.New(s.PoolAt(t, proxy.URL(), 4), txn.Settings{})
	other.Service = ordering.New(other.db, s.provider)
	return &other, proxy
}

// nthStatement is the moment at which the nth statement is executed, on whatever connection.
func nthStatement(n int) pgproxy.Point {
	seen := 0
	return pgproxy.Statement(func(string) bool { seen++; return seen == n })
}

// everyCut calls do with the connection cut around it at each point of it in turn, before the server
// saw what was sent or after it had answered, and says how often.
func everyCut(proxy *pgproxy.Proxy, nth func(int) pgproxy.Point, do func(name string)) (cuts int) {
	for side, cut := range map[string]func(pgproxy.Point) *pgproxy.Fault{"before": proxy.CutBefore, "after": proxy.CutAfter} {
		for k := 1; ; k++ {
			fault := cut(nth(k))
			do(fmt.Sprintf("%s no. %d", side, k))
			fault.Disarm()
			if fault.Count() == 0 {
				break
			}
			cuts++
		}
	}
	return cuts
}

// A connection that is cut at any message of placing an order: the request is answered all the same,
// the order is there once, and after the reconciler it is paid, once.
func TestAnAnswerThatIsLostPlacesOneOrder(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	cut, proxy := s.behind(t)
	cut.place(t, payment.SimOK) // opens the connection
	placed := 1
	cuts := everyCut(proxy, pgproxy.FrontendMessage, func(name string) {
		out, err := cut.Place(t.Context(), s.caller, s.input(name, payment.SimOK))
		if err != nil || out.Replayed {
			t.Errorf("cut %s: replayed %v, %v; want an order, made by this request", name, out.Replayed, err)
			return
		}
		placed++
		s.reconcile(t)
		again, err := s.Place(t.Context(), s.caller, s.input(name, payment.SimOK))
		if err != nil || !again.Replayed || again.Value.ID != out.Value.ID || again.Value.Status != domain.OrderPaid {
			t.Errorf("cut %s, asked again: %+v, %v", name, again, err)
		}
		s.wantHistory(t, out.Value.ID, "PLACED", "PAID")
	})
	if cuts < 50 {
		t.Errorf("only %d cuts", cuts)
	}
	if n := s.count(t, "orders"); n != placed || s.charged(t) != int64(placed)*10000 || s.count(t, "ops.simulated_payments") != placed {
		t.Errorf("%d orders placed: %d rows, %d charged", placed, n, s.charged(t))
	}
}

// The same of each statement of what moves an order: it is answered, and done once, although the first run of it may
// have committed without anybody hearing of it.
func TestAnAnswerThatIsLostMovesAnOrderOnce(t *testing.T) {
	t.Parallel()
	for to, from := range map[domain.OrderStatus]domain.OrderStatus{
		domain.OrderFulfilled: domain.OrderPaid, domain.OrderCancelled: domain.OrderPending, domain.OrderRefunded: domain.OrderPaid, domain.OrderPaid: domain.OrderPending,
	} {
		t.Run(string(to), func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			cut, proxy := s.behind(t)
			if _, err := moves[to](cut, t, s.in(t, from).ID, nil, nil); err != nil { // opens the connection
				t.Fatal(err)
			}
			moved := 1
			cuts := everyCut(proxy, nthStatement, func(name string) {
				order := s.in(t, from)
				out, err := moves[to](cut, t, order.ID, &order.UpdatedAt, &name)
				if err != nil || out.Replayed {
					t.Errorf("cut %s: replayed %v, %v; want a move, made by this request", name, out.Replayed, err)
				}
				moved++
				s.reconcile(t)
				s.wantStatus(t, order.ID, to)
			})
			if cuts < 10 {
				t.Errorf("only %d cuts", cuts)
			}
			if n := testdb.Scan[int](t, s.DB, "SELECT count(*) FROM order_history WHERE to_status = $1 AND from_status <> $1", to); n != moved {
				t.Errorf("%d orders moved, %d times", moved, n)
			}
			if to == domain.OrderRefunded && s.refunded(t) != int64(moved)*10000 || to == domain.OrderPaid && s.charged(t) != int64(moved)*10000 {
				t.Errorf("%d charged, %d given back for %d orders", s.charged(t), s.refunded(t), moved)
			}
		})
	}
}

// A webhook whose connection is cut at any statement is taken in whole or refused whole: sent again, it has been
// applied once.
func TestAnAnswerThatIsLostTakesAWebhookInOnce(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	cut, proxy := s.behind(t)
	first := s.place(t, payment.SimTimeoutUncharged)
	cut.tell(t, "first", first.ID, domain.FactPaid, "first", "", 10000)
	cuts := everyCut(proxy, nthStatement, func(name string) {
		order := s.place(t, payment.SimTimeoutUncharged)
		event := webhook(name, order.ID, domain.FactPaid, name, "", 10000)
		if err := cut.Receive(t.Context(), event); err != nil {
			t.Logf("cut %s: refused: %v", name, err)
		}
		if err := cut.Receive(t.Context(), event); err != nil {
			t.Errorf("cut %s: sent again: %v", name, err)
		}
		s.wantHistory(t, order.ID, "PLACED", "PAID")
	})
	if cuts < 10 {
		t.Errorf("only %d cuts", cuts)
	}
}

// A connection that is cut at any statement of giving a payment back: the request is answered all the same,
// and after the reconciler the payment is back, once.
func TestAnAnswerThatIsLostGivesAPaymentBackOnce(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	cut, proxy := s.behind(t)
	if _, err := cut.giveBack(t, s.in(t, domain.OrderPaid).ID, "none"); codeOf(err) != domain.CodeNotFound { // opens the connection
		t.Fatal(err)
	}
	returned := int64(0)
	cuts := everyCut(proxy, nthStatement, func(name string) {
		order := s.in(t, domain.OrderPaid)
		second := s.paidAgain(t, order, name, order.Total())
		out, err := cut.ReturnPayment(t.Context(), s.caller, ordering.ReturnPaymentInput{OrderID: order.ID, ProviderPaymentID: second, IdempotencyKey: &name})
		if err != nil || out.Replayed {
			t.Errorf("cut %s: replayed %v, %v; want it given back, by this request", name, out.Replayed, err)
		}
		returned++
		s.reconcile(t)
		s.wantRefunds(t, order.ID, 0, "10000 SUCCEEDED")
	})
	if cuts < 10 || s.refunded(t) != returned*10000 {
		t.Errorf("%d cuts, %d given back for %d payments", cuts, s.refunded(t), returned)
	}
	s.wantToLookAt(t)
}

// The same of what a person says of a refund, and of an order: it is written down once.
func TestAnAnswerThatIsLostTakesAPersonsWordOnce(t *testing.T) {
	t.Parallel()
	for event, say := range map[string]func(s *store, t *testing.T, order domain.OrderID, key string) (outcome, error){
		"PARTIALLY_REFUNDED": func(s *store, t *testing.T, order domain.OrderID, key string) (outcome, error) {
			return s.SettleRefund(t.Context(), s.caller, ordering.SettleRefundInput{
				RefundID:  testdb.Scan[domain.RefundID](t, s.DB, "SELECT id FROM refunds WHERE order_id = $1", order),
				Reference: &key, Note: "made", IdempotencyKey: &key,
			})
		},
		"ATTENTION_CLEARED": func(s *store, t *testing.T, order domain.OrderID, key string) (outcome, error) {
			s.Exec(t, "UPDATE refunds SET status = 'FAILED', ended_at = created_at WHERE order_id = $1", order)
			s.Exec(t, "UPDATE orders SET refunded_minor = 0 WHERE id = $1", order)
			return s.ClearAttention(t.Context(), s.caller, ordering.ClearAttentionInput{OrderID: order, Note: "seen", IdempotencyKey: &key})
		},
	} {
		t.Run(event, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			s.provider.network(nil, nil, func(context.Context, payment.Refund) (string, error) { return "", errors.New("no answer") })
			waiting := func(name string) domain.OrderID {
				order := s.in(t, domain.OrderPaid)
				s.tell(t, name, order.ID, "payment.disputed", "x", "", 1)
				if _, err := s.refund(t, order.ID, 100); err != nil {
					t.Fatal(err)
				}
				s.Exec(t, "UPDATE refunds SET created_at = '2020-01-01' WHERE order_id = $1", order.ID)
				return order.ID
			}
			cut, proxy := s.behind(t)
			if _, err := say(cut, t, waiting("first"), "first"); err != nil { // opens the connection
				t.Fatal(err)
			}
			said := 1
			cuts := everyCut(proxy, nthStatement, func(name string) {
				out, err := say(cut, t, waiting(name), name)
				if err != nil || out.Replayed {
					t.Errorf("cut %s: replayed %v, %v; want it written down, by this request", name, out.Replayed, err)
				}
				said++
			})
			if n := testdb.Scan[int](t, s.DB, "SELECT count(*) FROM order_history WHERE event = $1", event); cuts < 10 || n != said {
				t.Errorf("%d cuts; said %d times, written down %d times", cuts, said, n)
			}
		})
	}
}
