package ordering_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"countersign/internal/database"
	"countersign/internal/doctor"
	"countersign/internal/domain"
	"countersign/internal/payment"
	"countersign/internal/testdb"
	"countersign/internal/txn"
)

// unborn watches orders being inserted, and holds their transactions before a query: until they
// commit nobody else can know of them, but the one who tells their webhooks has to.
type unborn struct {
	before   string // the query's name, or its text
	inserted chan domain.OrderID
	open     chan struct{}
}

func (u *unborn) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	for _, arg := range data.Args {
		if id, ok := arg.(domain.OrderID); ok && strings.HasPrefix(data.SQL, "-- name: InsertOrder ") {
			u.inserted <- id
		}
	}
	if data.SQL == u.before || strings.HasPrefix(data.SQL, "-- name: "+u.before+" ") {
		<-u.open
	}
	return ctx
}

func (*unborn) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// watched is the same store on a server whose orders are held before a query.
func (s *store) watched(t *testing.T, before string) (*store, *unborn) {
	t.Helper()
	u := &unborn{before, make(chan domain.OrderID, 10), make(chan struct{})}
	pool, err := database.Open(t.Context(), s.URL, database.Options{MaxConns: 4, Tune: func(c *pgxpool.Config) { c.ConnConfig.Tracer = u }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	other := *s
	other.serve(txn.New(pool, txn.Settings{}))
	return &other, u
}

// Case 19: the webhook comes before its order, whose transaction is held at its commit: nobody knows
// whose it is. It is kept, and applied by whoever holds the order next, or by the sweep.
func TestCase19AWebhookBeforeItsOrder(t *testing.T) {
	t.Parallel()
	for by, method := range map[string]string{"the answer": payment.SimDeclined, "the sweep": payment.SimTimeoutUncharged} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			placing, held := s.watched(t, "commit")
			wait := meanwhile(func() { placing.place(t, method) })
			id := <-held.inserted
			s.tell(t, "evt", id, domain.FactPaid, "p1", "", 10000)
			if n := testdb.Scan[int](t, s.DB, "SELECT count(*) FROM ops.payment_events WHERE processed_at IS NULL AND tenant_id IS NULL"); n != 1 {
				t.Errorf("%d events are kept as nobody's", n)
			}
			close(held.open)
			wait()
			if by == "the sweep" {
				s.wantStatus(t, id, domain.OrderPending)
				s.provider.network(nil, func(context.Context, string) (payment.Payment, error) {
					return payment.Payment{}, errors.New("the provider is away")
				}, nil)
				if done := s.reconcile(t); done.Events != 1 || done.Waiting != 0 {
					t.Errorf("reconciled: %+v", done)
				}
			}
			s.wantStatus(t, id, domain.OrderPaid)
			if again := s.reconcile(t); again.Events+again.Settled+again.Waiting != 0 {
				t.Errorf("reconciled again: %+v", again)
			}
		})
	}
}

// Case 19's sister: a refund is told before its payment, and both before their order. What the
// placing request answers is the order as it is after both.
func TestCase19PaidAndRefundedBeforeTheOrder(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	placing, held := s.watched(t, "commit")
	wait := meanwhile(func() {
		if order := placing.place(t, payment.SimDeclined); order.Status != domain.OrderRefunded {
			t.Errorf("the answer is %s", order.Status)
		}
	})
	id := <-held.inserted
	s.tell(t, "1", id, domain.FactRefunded, "p1", "r1", 10000)
	s.tell(t, "2", id, domain.FactPaid, "p1", "", 10000)
	close(held.open)
	wait()
	s.wantHistory(t, id, "PLACED", "PAYMENT_FAILED", "PAID", "REFUNDED")
}

// A refund that waits for its payment belongs to its order's tenant as soon as the order is there:
// it is no stray.
func TestAnEventThatWaitsHasAnOwner(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	placing, held := s.watched(t, "commit")
	wait := meanwhile(func() { placing.place(t, payment.SimOK) })
	s.tell(t, "1", <-held.inserted, domain.FactRefunded, "another payment", "r1", 10000)
	if stray, err := doctor.Stray(t.Context(), s.db, 100); err != nil || len(stray) != 1 {
		t.Errorf("before: %d stray webhooks, %v", len(stray), err)
	}
	close(held.open)
	wait()
	if stray, err := doctor.Stray(t.Context(), s.db, 100); err != nil || len(stray) != 0 {
		t.Errorf("after: %d stray webhooks, %v", len(stray), err)
	}
	if done := s.reconcile(t); done.Waiting != 1 {
		t.Errorf("swept: %+v", done)
	}
}

// Case 19: a webhook for an order that was rolled back, or never was, is kept, shown to the operator,
// and harmless, however often it is swept.
func TestCase19AWebhookForNoOrder(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.product = s.newProduct(t, "KING", s.product.UnitPrice(), ptr(int64(0)))
	placing, held := s.watched(t, "TakeStock")
	wait := meanwhile(func() {
		_, err := placing.Place(t.Context(), s.caller, s.input("one", payment.SimOK))
		wantCode(t, err, domain.CodeInsufficientStock)
	})
	rolledBack := <-held.inserted
	s.tell(t, "1", rolledBack, domain.FactPaid, "p1", "", 10000)
	close(held.open)
	wait()
	for _, reference := range []string{"inv_1", "ord_", "ord_00000000000000000000000000", "'; --"} {
		e := webhook(reference, rolledBack, domain.FactPaid, "p1", "", 10000)
		e.Reference = reference
		if err := s.Receive(t.Context(), e); err != nil {
			t.Errorf("%q: %v", reference, err)
		}
	}
	for range 2 {
		if done := s.reconcile(t); done.Waiting != 5 || done.Events != 0 {
			t.Errorf("swept: %+v", done)
		}
	}
	if stray, err := doctor.Stray(t.Context(), s.db, 100); err != nil || len(stray) != 5 {
		t.Errorf("%d stray webhooks, %v", len(stray), err)
	}
	if s.count(t, "orders") != 0 || s.count(t, "captures") != 0 {
		t.Error("something was made of them")
	}
}

// An event that cannot be applied for now, because its order is held, holds up no other's.
func TestTheSweepGoesOn(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	placing, held := s.watched(t, "commit")
	ids := make([]domain.OrderID, 2)
	wait := meanwhile(func() { together(2, func(int) { placing.place(t, payment.SimTimeoutUncharged) }) })
	for i := range ids {
		ids[i] = <-held.inserted
		s.tell(t, ids[i].String(), ids[i], domain.FactPaid, ids[i].String(), "", 10000)
	}
	close(held.open)
	wait()
	tx, err := s.Owner(t).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT FROM orders WHERE id = $1 FOR UPDATE", ids[0]); err != nil {
		t.Fatal(err)
	}
	s.provider.network(nil, func(context.Context, string) (payment.Payment, error) {
		return payment.Payment{}, errors.New("the provider is away")
	}, nil)
	if done := s.reconcile(t); done.Events != 1 || done.Waiting != 1 {
		t.Errorf("swept: %+v", done)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if done := s.reconcile(t); done.Events != 1 || done.Waiting != 0 {
		t.Errorf("swept again: %+v", done)
	}
}
