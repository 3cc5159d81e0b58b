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
	err = errors.Join(s.attend(ctx, &r), s.reconcileAttempts(ctx, minAge, &r), s.reconcileRefunds(ctx, minAge, &r), s.sweepEvents(ctx, &r))
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
			count, err := s.reconcileAttempt(ctx, a, r)
			if err != nil {
				s.db.Logger.ErrorContext(ctx, "cannot reconcile", slog.String("attempt", a.ID.String()), slog.Any("error", err))
				count = &r.Pending
			}
			*count++
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
}

// reconcileAttempt settles an attempt if that can be done now, and says where in r it counts.
func (s *Service) reconcileAttempt(ctx context.Context, a *sqlc.PaymentAttempt, r *Reconciled) (count *int, err error) {
	if a.Provider != s.provider.Name() {
		return &r.Pending, nil
	}
	order, err := s.orderOf(ctx, a.TenantID, a.OrderID)
	if err != nil {
		return nil, err
	}
	c := charge{tenant: a.TenantID, attempt: a.ID, method: a.Method, by: reconciler}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := s.provider.Find(call, a.ID.String())
	if errors.Is(err, payment.ErrNotFound) {
		switch {
		case order.Status != domain.OrderPending && !s.atWork(a): // it is not to be paid any more
			_, err = s.giveUp(ctx, c, order, a)
			return &r.Settled, err
		case order.Status == domain.OrderPending && s.db.Clock().Sub(a.CreatedAt) >= s.provider.KeyWindow():
			return &r.Flagged, s.flag(ctx, a.TenantID, a.OrderID, "the provider knows nothing of a payment, and its key has expired", a.ID.String())
		}
		if claimed, claimErr := s.claim(ctx, order, a); claimErr != nil || !claimed {
			return &r.Pending, claimErr
		}
		answer, err = s.provider.Charge(call, payment.Charge{
			Key: a.ID.String(), Reference: order.ID.String(), Method: a.Method, Amount: order.Total(),
		})
	}
	if err != nil {
		return nil, err
	}
	_, err = s.settle(ctx, c, order.ID, answer)
	return &r.Settled, err
}

func (s *Service) orderOf(ctx context.Context, tenant domain.TenantID, id domain.OrderID) (*sqlc.Order, error) {
	orders, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Order, error) {
		return q.GetOrders(ctx, sqlc.GetOrdersParams{TenantID: tenant, Ids: []domain.OrderID{id}})
	})
	if err != nil {
		return nil, err
	}
	return orders[0], nil
}

// claim announces a call for an attempt, under the order's lock: not if the order is not to be paid
// any more, nor if somebody has ended or claimed the attempt since it was read. So nobody gives up
// what is about to be charged, and nobody charges what was given up.
func (s *Service) claim(ctx context.Context, order *sqlc.Order, a *sqlc.PaymentAttempt) (claimed bool, err error) {
	op, err := domain.NewOperation(order.TenantID, reconciler, "claimAttempt", "", nil, a.ID.String())
	if err != nil {
		return false, err
	}
	_, err = s.write(ctx, order.TenantID, order.ID, op, func(ctx context.Context, b *book) error {
		if claimed = false; b.order.Status != domain.OrderPending {
			return nil
		}
		_, err := b.tx.ClaimPaymentAttempt(ctx, sqlc.ClaimPaymentAttemptParams{
			TenantID: a.TenantID, ID: a.ID, ExpectedUpdatedAt: a.UpdatedAt, NextVersion: a.UpdatedAt.Next(b.tx.Now.Time),
		})
		if isNoRows(err) {
			return nil
		}
		if claimed = err == nil; claimed {
			err = b.read(ctx)
		}
		return err
	})
	return claimed && err == nil, err
}

// flag asks a person to look at an order, once per reason and what it is about.
func (s *Service) flag(ctx context.Context, tenant domain.TenantID, order domain.OrderID, reason, about string) error {
	return s.flagWhere(ctx, tenant, order, reason, about, func(b *book) bool {
		return b.order.Attention == nil || *b.order.Attention != reason
	})
}

// flagWhere is flag, if the order as it is held needs it.
func (s *Service) flagWhere(ctx context.Context, tenant domain.TenantID, order domain.OrderID, reason, about string, needed func(b *book) bool) error {
	op, err := domain.NewOperation(tenant, reconciler, "flag", "", &about, reason)
	if err != nil {
		return err
	}
	op.KeyGiven = false
	_, err = s.write(ctx, tenant, order, op, func(ctx context.Context, b *book) error {
		if !needed(b) {
			return nil
		}
		var err error
		b.order, err = move{to: b.order.Status, event: "FLAGGED", detail: &reason, refunded: b.order.RefundedMinor, attention: &reason, op: op}.run(ctx, b.tx, b.order)
		return err
	})
	return err
}

// attend asks for a person where money is to be given back and nobody has asked: a server of before this one
// did not.
func (s *Service) attend(ctx context.Context, r *Reconciled) error {
	captures, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Capture, error) {
		return q.EveryUnattendedCapture(ctx, sqlc.EveryUnattendedCaptureParams{RowLimit: sweepPage})
	})
	for _, c := range captures {
		err := s.flagWhere(ctx, c.TenantID, c.OrderID, dueReason, c.Provider+" "+c.ProviderPaymentID, func(b *book) bool {
			return b.order.Attention == nil && b.owes()
		})
		if err != nil {
			s.db.Logger.ErrorContext(ctx, "cannot reconcile", slog.String("order", c.OrderID.String()), slog.Any("error", err))
			continue
		}
		r.Flagged++
	}
	return err
}

func (s *Service) reconcileRefunds(ctx context.Context, minAge time.Duration, r *Reconciled) error {
	arg := sqlc.EveryPendingRefundParams{Before: s.db.Clock().Add(-minAge), RowLimit: sweepPage}
	for {
		refunds, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.EveryPendingRefundRow, error) {
			return q.EveryPendingRefund(ctx, arg)
		})
		if err != nil || len(refunds) == 0 {
			return err
		}
		for _, row := range refunds {
			arg.AfterID = row.Refund.ID
			count, err := s.reconcileRefund(ctx, &row.Refund, row.Currency, r)
			if err != nil {
				s.db.Logger.ErrorContext(ctx, "cannot reconcile", slog.String("refund", row.Refund.ID.String()), slog.Any("error", err))
				continue
			}
			if count != nil {
				*count++
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
}

// reconcileRefund asks the provider again under the refund's key, as long as the provider knows its
// keys: after that it could give the money back twice.
func (s *Service) reconcileRefund(ctx context.Context, row *sqlc.Refund, currency domain.CurrencyCode, r *Reconciled) (count *int, err error) {
	if s.db.Clock().Sub(row.CreatedAt) >= s.provider.KeyWindow() {
		return &r.Flagged, s.flag(ctx, row.TenantID, row.OrderID, "the outcome of a refund is not known, and its key has expired", row.ID.String())
	}
	if s.refund(ctx, row, currency, reconciler) == nil {
		return nil, nil
	}
	return &r.Refunds, nil
}
