package ordering

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/internal/domain"
	"countersign/internal/payment"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// errNoOperation is what Find says of a write that has no operation to look up.
var errNoOperation = pgx.ErrNoRows

// sweepPage is how many rows a sweep reads at once.
const sweepPage = 100

// Reconciled is what a reconciliation did.
type Reconciled struct {
	Settled int // attempts whose outcome is known now
	Pending int // attempts that stay unknown
	Flagged int // orders that a person has to look at
	Refunds int // refunds whose outcome is known now
	Events  int // webhooks that were applied
	Waiting int // webhooks that wait, for their payment or for their order
}

// Reconcile settles what is older than minAge and still unknown: it asks the provider, and where
// the provider knows nothing it calls again under the same attempt's key, as long as the provider
// knows its keys; after that a person has to look. What it does is safe to do twice, and at once.
func (s *Service) Reconcile(ctx context.Context, minAge time.Duration) (r Reconciled, err error) {
	err = errors.Join(s.reconcileAttempts(ctx, minAge, &r), s.reconcileRefunds(ctx, minAge, &r), s.sweepEvents(ctx, &r))
	return r, err
}

const reconciler = "reconciler"

func (s *Service) reconcileAttempts(ctx context.Context, minAge time.Duration, r *Reconciled) error {
	arg := sqlc.EveryPendingAttemptParams{Before: s.db.Clock().Add(-minAge), RowLimit: sweepPage}
	for {
		attempts, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.PaymentAttempt, error) {
			return q.EveryPendingAttempt(ctx, arg)
		})
		if err != nil || len(attempts) == 0 {
			return err
		}
		for _, a := range attempts {
			arg.AfterID = a.ID
			if err := s.reconcileAttempt(ctx, a, r); err != nil {
				s.db.Logger.ErrorContext(ctx, "cannot reconcile", slog.String("attempt", a.ID.String()), slog.Any("error", err))
				r.Pending++
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
}

func (s *Service) reconcileAttempt(ctx context.Context, a *sqlc.PaymentAttempt, r *Reconciled) error {
	orders, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Order, error) {
		return q.GetOrders(ctx, sqlc.GetOrdersParams{TenantID: a.TenantID, Ids: []domain.OrderID{a.OrderID}})
	})
	if err != nil {
		return err
	}
	order := orders[0]
	c := charge{tenant: a.TenantID, attempt: a.ID, method: a.Method, by: reconciler}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := s.provider.Find(call, a.ID.String())
	switch {
	case err == nil:
		_, err = s.settle(ctx, c, order.ID, answer)
	case errors.Is(err, payment.ErrNotFound) && s.db.Clock().Sub(a.CreatedAt) < s.provider.KeyWindow():
		answer, err = s.provider.Charge(call, payment.Charge{Key: a.ID.String(), Reference: order.ID.String(), Method: a.Method, Amount: order.Total()})
		if err == nil {
			_, err = s.settle(ctx, c, order.ID, answer)
		}
	case errors.Is(err, payment.ErrNotFound):
		r.Flagged++
		return s.flag(ctx, order, a)
	}
	if err == nil {
		r.Settled++
	}
	return err
}

// flag asks a person to look at an order whose payment can neither be found nor safely be made.
func (s *Service) flag(ctx context.Context, order *sqlc.Order, a *sqlc.PaymentAttempt) error {
	key, reason := a.ID.String(), "the provider knows nothing of a payment, and its key has expired"
	op, err := domain.NewOperation(order.TenantID, reconciler, "flagAttempt", "", &key, reason)
	if err != nil {
		return err
	}
	op.KeyGiven = false
	_, err = s.write(ctx, order.TenantID, order.ID, op, func(ctx context.Context, b *book) error {
		if b.order.Attention != nil && *b.order.Attention == reason {
			return nil
		}
		var err error
		b.order, err = move{to: b.order.Status, event: "FLAGGED", detail: &reason, refunded: b.order.RefundedMinor, attention: &reason, op: op}.run(ctx, b.tx, b.order)
		return err
	})
	return err
}

func (s *Service) reconcileRefunds(ctx context.Context, minAge time.Duration, r *Reconciled) error {
	arg := sqlc.EveryPendingRefundParams{Before: s.db.Clock().Add(-minAge), RowLimit: sweepPage}
	for {
		refunds, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Refund, error) {
			return q.EveryPendingRefund(ctx, arg)
		})
		if err != nil || len(refunds) == 0 {
			return err
		}
		for _, row := range refunds {
			arg.AfterID = row.ID
			orders, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Order, error) {
				return q.GetOrders(ctx, sqlc.GetOrdersParams{TenantID: row.TenantID, Ids: []domain.OrderID{row.OrderID}})
			})
			if err != nil {
				return err
			}
			if s.refund(ctx, row, orders[0].Currency, reconciler) != nil {
				r.Refunds++
			}
		}
	}
}
