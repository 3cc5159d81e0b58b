package invoicing

import (
	"context"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/paging"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// InvoiceFilter narrows a list of invoices; what is nil does not.
type InvoiceFilter struct {
	CustomerID *domain.CustomerID
	Status     *domain.InvoiceStatus
}

// ListInvoices returns a page of invoices, in order of creation.
func (s *Service) ListInvoices(ctx context.Context, caller auth.Caller, f InvoiceFilter, p paging.Request[domain.InvoiceID]) (paging.Page[*sqlc.Invoice], error) {
	arg := sqlc.ListInvoicesParams{TenantID: caller.TenantID, AfterID: p.After, BeforeID: p.Before, RowLimit: p.Limit()}
	if f.Status != nil {
		arg.Status = *f.Status
	}
	var ok bool
	if arg.CustomerID, ok = caller.Narrow(f.CustomerID); !ok {
		return paging.Page[*sqlc.Invoice]{}, nil
	}
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Invoice, error) {
		if p.Backward {
			return q.ListInvoicesBackward(ctx, sqlc.ListInvoicesBackwardParams(arg))
		}
		return q.ListInvoices(ctx, arg)
	})
	return paging.Cut(p, rows), err
}

// NumberKey is where an invoice stands in its series.
type NumberKey struct {
	PeriodStart domain.Date
	Sequence    int64
}

// ListNumbers returns a page of a series' invoices, in the order of their numbers.
func (s *Service) ListNumbers(ctx context.Context, caller auth.Caller, series domain.SeriesID, p paging.Request[NumberKey]) (paging.Page[*sqlc.Invoice], error) {
	arg := sqlc.ListInvoicesOfSeriesParams{
		TenantID: caller.TenantID, SeriesID: &series, RowLimit: p.Limit(),
		AfterPeriod: p.After.PeriodStart, AfterSequence: p.After.Sequence,
		BeforePeriod: p.Before.PeriodStart, BeforeSequence: p.Before.Sequence,
	}
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Invoice, error) {
		if p.Backward {
			return q.ListInvoicesOfSeriesBackward(ctx, sqlc.ListInvoicesOfSeriesBackwardParams(arg))
		}
		return q.ListInvoicesOfSeries(ctx, arg)
	})
	return paging.Cut(p, rows), err
}
