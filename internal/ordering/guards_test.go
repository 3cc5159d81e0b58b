package ordering_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"countersign/internal/domain"
	"countersign/internal/ordering"
	"countersign/internal/payment"
	"countersign/internal/testdb"
	"countersign/sqlc"
)

// The guards of MoveOrder, and what stands in their place when one is taken away: a condition that
// holds of every row, since a parameter cannot just be left out.
const (
	statusList, anyStatus    = "status = ANY($9)", "cardinality($9::text[]) > 0"
	versionToken, anyVersion = "updated_at = $10", "$10::timestamptz IS NOT NULL"
)

// moveBy is a guarded update by somebody who has decided on the order as given.
func moveBy(t *testing.T, db sqlc.DBTX, decidedOn *sqlc.Order, to domain.OrderStatus, from []domain.OrderStatus, refunded domain.Cents) error {
	_, err := sqlc.New(db).MoveOrder(t.Context(), sqlc.MoveOrderParams{
		TenantID: decidedOn.TenantID, ID: decidedOn.ID, ToStatus: to, RefundedMinor: refunded, MovedAt: decidedOn.CreatedAt,
		AllowedStatuses: from, ExpectedUpdatedAt: decidedOn.UpdatedAt, NextVersion: decidedOn.UpdatedAt.Next(decidedOn.UpdatedAt.Time),
	})
	return err
}

// Proves the version token of MoveOrder: of two who reserve 60.00 of the same 100.00, both decided
// before either wrote, the second is refused. Without the token it overwrites the first one's
// reservation, and 120.00 can go back of which 60.00 are counted.
func TestTheVersionTokenOfAMove(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	owner := s.Owner(t)
	reserve := func(db sqlc.DBTX, decidedOn *sqlc.Order) error {
		return moveBy(t, db, decidedOn, domain.OrderPaid, []domain.OrderStatus{domain.OrderPaid}, decidedOn.RefundedMinor+6000)
	}
	order := s.in(t, domain.OrderPaid)
	if err := reserve(owner, order); err != nil {
		t.Fatal(err)
	}
	if err := reserve(owner, order); !errors.Is(err, pgx.ErrNoRows) {
		t.Errorf("the second, guarded: %v", err)
	}
	if err := reserve(testdb.Weaken(t, owner, "MoveOrder", versionToken, anyVersion), order); err != nil {
		t.Errorf("the second, without the guard: %v", err)
	}
	if got := s.order(t, order.ID).RefundedMinor; got != 6000 {
		t.Errorf("%d are reserved after 60.00 twice; expected the first to be overwritten", got)
	}
	s.damaged.Store(true) // what was reserved here has no refunds
}

// Proves the status list of MoveOrder: a move that the state machine does not have is refused on the
// current version too. Without the list an order that was delivered is undelivered, and the doctor
// says so.
func TestTheStatusListOfAMove(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	owner := s.Owner(t)
	order := s.in(t, domain.OrderFulfilled)
	if err := moveBy(t, owner, order, domain.OrderPaid, domain.OrderPaid.Sources(), 0); !errors.Is(err, pgx.ErrNoRows) {
		t.Errorf("guarded: %v", err)
	}
	s.healthy(t)
	if err := moveBy(t, testdb.Weaken(t, owner, "MoveOrder", statusList, anyStatus), order, domain.OrderPaid, domain.OrderPaid.Sources(), 0); err != nil {
		t.Errorf("without the guard: %v", err)
	}
	s.damaged.Store(true)
	if broken := s.broken(t); len(broken) != 1 || !strings.HasPrefix(broken[0], "ORDER_HISTORY_LEGAL") {
		t.Errorf("the doctor finds %q", broken)
	}
}

// Proves the index orders_idempotency_key, and that the operation's own indexes stand behind it: two
// first requests, both past their look-up, place one order as long as one of them is there. Without
// all of them there are two, and the doctor says so.
func TestTheIndexesThatAKeyIsGoodForOneOrder(t *testing.T) {
	t.Parallel()
	const byKey, byOperation = "ALTER TABLE orders DROP CONSTRAINT orders_idempotency_key",
		"ALTER TABLE orders DROP CONSTRAINT orders_operation_key; ALTER TABLE order_history DROP CONSTRAINT order_history_operation_key"
	for name, c := range map[string]struct {
		dropped []string
		orders  int
	}{
		"the key's alone":      {[]string{byOperation}, 1},
		"the operation's only": {[]string{byKey}, 1},
		"none":                 {[]string{byKey, byOperation}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			for _, sql := range c.dropped {
				s.Exec(t, sql)
			}
			gate := s.Gate(t, "InsertOrder")
			wait := meanwhile(func() {
				together(2, func(int) {
					if _, err := s.Place(t.Context(), s.caller, s.input("one", payment.SimOK)); err != nil {
						t.Errorf("refused: %v", err)
					}
				})
			})
			gate.Await(t, 2)
			gate.Open()
			wait()
			if n := s.count(t, "orders"); n != c.orders || s.charged(t) != int64(c.orders)*10000 {
				t.Errorf("%d orders, %d charged; want %d orders", n, s.charged(t), c.orders)
			}
			if c.orders > 1 {
				s.damaged.Store(true)
				if !slices.ContainsFunc(s.broken(t), func(v string) bool { return strings.HasPrefix(v, "ORDER_ONE_PER_KEY") }) {
					t.Errorf("the doctor finds %q", s.broken(t))
				}
			}
		})
	}
}

// Proves the index payment_attempts_one_pending_key: a second attempt cannot be opened while one is
// unknown. Without it there are two; the reconciler's claim still lets one be charged, and the other
// is given up once nobody can be at it.
func TestTheIndexThatOneAttemptIsPending(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	q := sqlc.New(s.Owner(t))
	order := s.place(t, payment.SimTimeoutUncharged)
	open := func() error {
		_, err := q.InsertPaymentAttempt(t.Context(), sqlc.InsertPaymentAttemptParams{
			TenantID: order.TenantID, ID: domain.NewID[domain.AttemptID](), OrderID: order.ID, Ordinal: 2, Provider: "simulated",
			Method: payment.SimOK, CreatedAt: order.CreatedAt, UpdatedAt: order.UpdatedAt,
		})
		return err
	}
	var refused *pgconn.PgError
	if err := open(); !errors.As(err, &refused) || refused.ConstraintName != "payment_attempts_one_pending_key" {
		t.Errorf("the second attempt: %v", err)
	}
	s.Exec(t, "DROP INDEX payment_attempts_one_pending_key")
	if err := open(); err != nil {
		t.Errorf("without the index: %v", err)
	}
	if n := testdb.Scan[int](t, s.DB, "SELECT count(*) FROM payment_attempts WHERE status = 'PENDING'"); n != 2 {
		t.Errorf("%d attempts are pending, expected two without the index", n)
	}
	if done := s.reconcile(t); done.Settled != 1 || done.Pending != 1 {
		t.Errorf("reconciled: %+v", done)
	}
	s.later(time.Hour)
	if done := s.reconcile(t); done.Settled != 1 || s.charged(t) != 10000 {
		t.Errorf("reconciled an hour later: %+v, %d charged", done, s.charged(t))
	}
	s.wantHistory(t, order.ID, "PLACED", "PAID")
}

// Two who retry a payment at once, both decided that they may: one opens an attempt, the other is
// told that one is at work, and there is one charge.
func TestTwoRetriesAtOnce(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	order := s.in(t, domain.OrderPending)
	answered := make(chan struct{})
	s.provider.network(func(ctx context.Context, c payment.Charge) (payment.Payment, error) {
		<-answered
		return s.provider.Simulated.Charge(ctx, c)
	}, nil, nil)
	gate := s.Gate(t, "MoveOrder")
	codes := make([]domain.Code, 2)
	wait := meanwhile(func() {
		together(2, func(i int) {
			_, err := s.RetryPayment(t.Context(), s.caller, ordering.RetryPaymentInput{OrderID: order.ID})
			if codes[i] = codeOf(err); err != nil {
				close(answered)
			}
		})
	})
	gate.Await(t, 2)
	gate.Open()
	wait()
	if !slices.Contains(codes, "") || !slices.Contains(codes, domain.CodePaymentInProgress) {
		t.Errorf("got %q", codes)
	}
	s.wantStatus(t, order.ID, domain.OrderPaid)
	if got := s.charged(t); got != 10000 {
		t.Errorf("%d are charged", got)
	}
}

// Proves the inbox's key: an event is taken in once. Without it, and without what stands beside it in
// the query, the inbox holds it twice.
func TestTheKeyOfTheInbox(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	owner := s.Owner(t)
	arg := sqlc.EveryPaymentEventInsertParams{Provider: "simulated", EventID: "evt", Kind: domain.FactPaid, Reference: "r", PaymentID: "p"}
	insert := func(q *sqlc.Queries) error {
		_, err := q.EveryPaymentEventInsert(t.Context(), arg)
		return err
	}
	weak := testdb.Without(t, owner, "ON CONFLICT ON CONSTRAINT payment_events_pkey DO NOTHING")
	if err := insert(sqlc.New(owner)); err != nil {
		t.Fatal(err)
	}
	if err := insert(sqlc.New(owner)); !errors.Is(err, pgx.ErrNoRows) {
		t.Errorf("a second time: %v", err)
	}
	var refused *pgconn.PgError
	if err := insert(weak); !errors.As(err, &refused) || refused.ConstraintName != "payment_events_pkey" {
		t.Errorf("by the index alone: %v", err)
	}
	s.Exec(t, "ALTER TABLE ops.payment_events DROP CONSTRAINT payment_events_pkey")
	if err := insert(weak); err != nil || s.count(t, "ops.payment_events") != 2 {
		t.Errorf("without both: %v, %d events", err, s.count(t, "ops.payment_events"))
	}
}
