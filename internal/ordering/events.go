package ordering

import (
	"context"
	"time"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/paging"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// EventKey is where an event stands in the inbox.
type EventKey struct {
	ReceivedAt        time.Time
	Provider, EventID string
}

// ListEvents returns a page of the events about the tenant's payments, in order of arrival.
func (s *Service) ListEvents(ctx context.Context, caller auth.Caller, p paging.Request[EventKey]) (paging.Page[*sqlc.OpsPaymentEvent], error) {
	arg := sqlc.EveryPaymentEventOfTenantParams{
		TenantID:        domain.UUID(caller.TenantID),
		AfterReceivedAt: p.After.ReceivedAt, AfterProvider: p.After.Provider, AfterEventID: p.After.EventID,
		BeforeReceivedAt: p.Before.ReceivedAt, BeforeProvider: p.Before.Provider, BeforeEventID: p.Before.EventID,
		RowLimit: p.Limit(),
	}
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.OpsPaymentEvent, error) {
		if p.Backward {
			return q.EveryPaymentEventOfTenantBackward(ctx, sqlc.EveryPaymentEventOfTenantBackwardParams(arg))
		}
		return q.EveryPaymentEventOfTenant(ctx, arg)
	})
	return paging.Cut(p, rows), err
}
