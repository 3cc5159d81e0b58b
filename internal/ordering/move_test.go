package ordering_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"countersign/internal/domain"
	"countersign/internal/ordering"
	"countersign/internal/payment"
	"countersign/internal/testdb"
	"countersign/internal/txn"
	"countersign/sqlc"
)

type outcome = txn.Outcome[*sqlc.Order]

// moves are what a caller may ask to be done with an order, and where the state machine has to let
// it go for that.
var moves = map[domain.OrderStatus]func(s *store, t *testing.T, id domain.OrderID, version *domain.Version, key *string) (outcome, error){
	domain.OrderFulfilled: func(s *store, t *testing.T, id domain.OrderID, version *domain.Version, key *string) (outcome, error) {
		return s.Fulfill(t.Context(), s.caller, ordering.FulfillOrderInput{OrderID: id, Version: version, IdempotencyKey: key})
	},
	domain.OrderCancelled: func(s *store, t *testing.T, id domain.OrderID, version *domain.Version, key *string) (outcome, error) {
		return s.Cancel(t.Context(), s.caller, ordering.CancelOrderInput{OrderID: id, Version: version, IdempotencyKey: key})
	},
	domain.OrderRefunded: func(s *store, t *testing.T, id domain.OrderID, version *domain.Version, key *string) (outcome, error) {
		return s.Refund(t.Context(), s.caller, ordering.RefundOrderInput{OrderID: id, Version: version, IdempotencyKey: key})
	},
	domain.OrderPaid: func(s *store, t *testing.T, id domain.OrderID, _ *domain.Version, key *string) (outcome, error) {
		return s.RetryPayment(t.Context(), s.caller, ordering.RetryPaymentInput{OrderID: id, IdempotencyKey: key})
	},
}

// in is an order in a state; a pending one has been declined.
func (s *store) in(t *testing.T, status domain.OrderStatus) *sqlc.Order {
	t.Helper()
	order := s.place(t, map[bool]string{true: payment.SimDeclined, false: payment.SimOK}[status == domain.OrderPending || status == domain.OrderCancelled])
	if order.Status == status {
		return order
	}
	out, err := moves[status](s, t, order.ID, nil, nil)
	if err != nil || out.Value.Status != status {
		t.Fatalf("no order that is %s: %v", status, err)
	}
	return out.Value
}

// stale is the version of some earlier time.
func stale() *domain.Version { return &domain.Version{} }

// Every state × every move of a caller's: an illegal one is refused with both states, whatever
// version it was decided on; a legal one on an older version is refused with STALE_VERSION, and on
// the current one, or none, it is made, and is in the history.
func TestEveryStateTimesEveryMoveOfACaller(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	for _, from := range domain.OrderStatuses {
		for to, move := range moves {
			order := s.in(t, from)
			legal := from.CheckMove(to) == nil
			if to != domain.OrderPaid || !legal { // retryPayment takes no version
				_, err := move(s, t, order.ID, stale(), nil)
				var illegal *domain.IllegalTransitionError
				switch {
				case legal:
					wantCode(t, err, domain.CodeStaleVersion)
				case !errors.As(err, &illegal) || illegal.From != from || illegal.To != to:
					t.Errorf("%s to %s: got %v, want both states", from, to, err)
				}
				if now := s.order(t, order.ID); !now.UpdatedAt.Equal(order.UpdatedAt.Time) {
					t.Errorf("%s to %s: the refusal changed the order", from, to)
				}
			}
			if !legal {
				continue
			}
			out, err := move(s, t, order.ID, &order.UpdatedAt, nil)
			if err != nil || out.Value.Status != to || !out.Value.UpdatedAt.After(order.UpdatedAt.Time) {
				t.Errorf("%s to %s: %+v, %v", from, to, out.Value, err)
			}
			if last := testdb.Scan[string](t, s.DB, `SELECT from_status || ' ' || to_status || ' ' || moved_by FROM order_history
				WHERE order_id = $1 ORDER BY position DESC LIMIT 1`, order.ID); last != fmt.Sprint(from, " ", to, " ", s.caller.TokenID) {
				t.Errorf("%s to %s: the history ends with %q", from, to, last)
			}
		}
	}
}

// The same move asked again under its key is answered with the order, marked replayed, and done
// once; under another input the key is refused, and tells nothing.
func TestAMoveIsReplayed(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	for to, move := range moves {
		from := map[domain.OrderStatus]domain.OrderStatus{domain.OrderFulfilled: domain.OrderPaid, domain.OrderRefunded: domain.OrderPaid}[to]
		if from == "" {
			from = domain.OrderPending
		}
		order, key := s.in(t, from), "key of "+string(to)
		first, err := move(s, t, order.ID, nil, &key)
		if err != nil || first.Replayed {
			t.Errorf("to %s: replayed %v, %v", to, first.Replayed, err)
		}
		again, err := move(s, t, order.ID, nil, &key)
		if err != nil || !again.Replayed || again.Value.ID != order.ID || !again.Value.UpdatedAt.Equal(first.Value.UpdatedAt.Time) {
			t.Errorf("to %s again: %+v, %v", to, again, err)
		}
		other, err := move(s, t, s.in(t, from).ID, nil, &key)
		wantCode(t, err, domain.CodeIdempotencyKeyReused)
		if other.Value != nil {
			t.Errorf("to %s: the refusal carries an order", to)
		}
	}
}

// A customer's keys are its own: a key that another has used is new to it. An order that is another's
// is as good as absent.
func TestAMoveOfAnotherCustomer(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order, key := s.in(t, domain.OrderPending), "1"
	if _, err := moves[domain.OrderCancelled](s, t, order.ID, nil, &key); err != nil {
		t.Fatal(err)
	}
	sister := *s
	sister.customer = s.newCustomer(t)
	own := sister.in(t, domain.OrderPending)
	sister.caller.Role, sister.caller.CustomerID = domain.RoleCustomer, sister.customer
	if out, err := moves[domain.OrderCancelled](&sister, t, own.ID, nil, &key); err != nil || out.Replayed || out.Value.ID != own.ID {
		t.Errorf("its own order under the key: %+v, %v", out, err)
	}
	_, err := moves[domain.OrderCancelled](&sister, t, order.ID, nil, nil)
	wantCode(t, err, domain.CodeNotFound)
}

// Two requests with one key at once, the second past its look-up when the first is done: it does not
// find an illegal move, it finds its own.
func TestTwinsOfOneMove(t *testing.T) {
	t.Parallel()
	for to, from := range map[domain.OrderStatus]domain.OrderStatus{
		domain.OrderFulfilled: domain.OrderPaid, domain.OrderCancelled: domain.OrderPending, domain.OrderRefunded: domain.OrderPaid, domain.OrderPaid: domain.OrderPending,
	} {
		t.Run(string(to), func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			order, key, move := s.in(t, from), "key", moves[to]
			gate := s.Gate(t, "begin")
			wait := meanwhile(func() {
				out, err := move(s, t, order.ID, nil, &key)
				if err != nil || !out.Replayed || out.Value.Status != to {
					t.Errorf("the second: %+v, %v", out, err)
				}
			})
			gate.Await(t, 1)
			s.Before("begin", nil)
			charges := s.charged(t)
			if out, err := move(s, t, order.ID, nil, &key); err != nil || out.Replayed || out.Value.Status != to {
				t.Errorf("the first: %+v, %v", out, err)
			}
			gate.Open()
			wait()
			if n := s.charged(t); n > charges+10000 || s.refunded(t) > 10000 {
				t.Errorf("%d charged, %d refunded", n, s.refunded(t))
			}
		})
	}
}

// An order that somebody else moves between the read and the guarded write is read again and decided
// anew: what the other did is never overwritten.
func TestAThirdPartyMovesTheOrderBetweenReadAndWrite(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	var third atomic.Pointer[func()]
	s.Before("MoveOrder", func(context.Context) {
		if f := third.Swap(nil); f != nil {
			(*f)()
		}
	})
	const moved = ", updated_at = updated_at + interval '1 microsecond' WHERE id = $1"
	for name, c := range map[string]struct {
		from, to domain.OrderStatus
		sql      string
		status   domain.OrderStatus // where it ends
		code     domain.Code
	}{
		"fulfilled meanwhile":   {domain.OrderPaid, domain.OrderFulfilled, "status = 'FULFILLED', fulfilled_at = now()", domain.OrderFulfilled, domain.CodeIllegalTransition},
		"cancelled meanwhile":   {domain.OrderPending, domain.OrderCancelled, "status = 'CANCELLED', cancelled_at = now()", domain.OrderCancelled, domain.CodeIllegalTransition},
		"paid before a cancel":  {domain.OrderPending, domain.OrderCancelled, "status = 'PAID', paid_at = now()", domain.OrderPaid, domain.CodeIllegalTransition},
		"refunded before":       {domain.OrderPaid, domain.OrderFulfilled, "status = 'REFUNDED', refunded_at = now(), refunded_minor = total_minor", domain.OrderRefunded, domain.CodeIllegalTransition},
		"refunded meanwhile":    {domain.OrderPaid, domain.OrderRefunded, "refunded_minor = total_minor", domain.OrderPaid, domain.CodeRefundTooLarge},
		"noted, then fulfilled": {domain.OrderPaid, domain.OrderFulfilled, "attention = 'look'", domain.OrderFulfilled, ""},
		"noted, then cancelled": {domain.OrderPending, domain.OrderCancelled, "attention = 'look'", domain.OrderCancelled, ""},
	} {
		for _, versioned := range []bool{false, true} {
			order := s.in(t, c.from)
			third.Store(ptr(func() { s.Exec(t, "UPDATE orders SET "+c.sql+moved, order.ID) }))
			var version *domain.Version
			code := c.code
			if versioned {
				if version = &order.UpdatedAt; code != domain.CodeIllegalTransition {
					code = domain.CodeStaleVersion
				}
			}
			_, err := moves[c.to](s, t, order.ID, version, nil)
			if codeOf(err) != code {
				t.Errorf("%s, versioned %v: got %v, want %q", name, versioned, err, code)
			}
			now := s.order(t, order.ID)
			if want := map[bool]domain.OrderStatus{true: c.status, false: c.from}[code != domain.CodeStaleVersion]; now.Status != want {
				t.Errorf("%s, versioned %v: the order is %s, want %s", name, versioned, now.Status, want)
			}
			if strings.HasPrefix(c.sql, "attention") && now.Attention == nil {
				t.Errorf("%s: the note was overwritten", name)
			}
		}
	}
	s.damaged.Store(true) // the third party kept no history
}

// Somebody who is always faster makes the server give up after a bounded number of tries, with
// nothing changed.
func TestAThirdPartyThatIsAlwaysFaster(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.in(t, domain.OrderPaid)
	tries := 0
	s.Before("MoveOrder", func(context.Context) {
		tries++
		s.Exec(t, "UPDATE orders SET updated_at = updated_at + interval '1 microsecond' WHERE id = $1", order.ID)
	})
	_, err := moves[domain.OrderFulfilled](s, t, order.ID, nil, nil)
	wantCode(t, err, domain.CodeBusy)
	if tries < 2 || tries > 5 {
		t.Errorf("%d tries", tries)
	}
	s.wantHistory(t, order.ID, "PLACED", "PAID")
}

// Case 28: a version that went out as text comes back: whole it is the order's, cut to milliseconds
// it is stale, and the order stays as it is.
func TestCase28AVersionSentBack(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	for cut, want := range map[bool]domain.Code{false: "", true: domain.CodeStaleVersion} {
		order := s.in(t, domain.OrderPaid)
		s.Exec(t, "UPDATE orders SET updated_at = date_trunc('second', updated_at) + interval '309921 microseconds' WHERE id = $1", order.ID)
		text := domain.FormatTime(s.order(t, order.ID).UpdatedAt.Time)
		if !strings.HasSuffix(text, ".309921Z") {
			t.Fatalf("the version is %s", text)
		}
		if cut {
			text = strings.Replace(text, ".309921Z", ".309Z", 1)
		}
		var version domain.Version
		if err := version.UnmarshalGQL(text); err != nil {
			t.Fatal(err)
		}
		_, err := moves[domain.OrderFulfilled](s, t, order.ID, &version, nil)
		wantCode(t, err, want)
	}
}

// A product is changed on the version that the caller saw; the loser of two changes at once is told
// that it is stale, and an order keeps the price that it was placed at.
func TestUpdateProduct(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.place(t, payment.SimOK)
	change := func(version domain.Version, price domain.Cents, key *string) (txn.Outcome[*sqlc.Product], error) {
		return s.UpdateProduct(t.Context(), s.caller, ordering.UpdateProductInput{
			ProductID: s.product.ID, Version: version, UnitPriceMinor: &price, IdempotencyKey: key,
		})
	}
	_, err := change(*stale(), 1, nil)
	wantCode(t, err, domain.CodeStaleVersion)
	gate := s.Gate(t, "ChangeProduct")
	codes := make([]domain.Code, 2)
	wait := meanwhile(func() {
		together(2, func(i int) {
			_, err := change(s.product.UpdatedAt, domain.Cents(100+i), nil)
			codes[i] = codeOf(err)
		})
	})
	gate.Await(t, 2)
	gate.Open()
	wait()
	if codes[0] == codes[1] || codes[0]+codes[1] != domain.CodeStaleVersion {
		t.Errorf("two changes at once: %q", codes)
	}
	products, err := s.ProductsByID(t.Context(), s.caller, []domain.ProductID{s.product.ID})
	if err != nil {
		t.Fatal(err)
	}
	first, err := change(products[0].UpdatedAt, 500, ptr("key"))
	if err != nil || first.Replayed {
		t.Errorf("the third: %+v, %v", first, err)
	}
	if again, err := change(products[0].UpdatedAt, 500, ptr("key")); err != nil || !again.Replayed {
		t.Errorf("asked again: %+v, %v", again, err)
	}
	if got := s.order(t, order.ID).TotalMinor; got != 10000 {
		t.Errorf("the order costs %d now", got)
	}
}
