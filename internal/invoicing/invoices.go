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

// InvoicePage is a page of invoices.
type InvoicePage = paging.Page[*sqlc.Invoice]

// ListInvoices returns a page of invoices, in order of creation.
func (s *Service) ListInvoices(ctx context.Context, caller auth.Caller, f InvoiceFilter, p paging.Request[domain.InvoiceID]) (InvoicePage, error) {
	customer, ok := caller.Narrow(f.CustomerID)
	if !ok || f.Status != nil && f.Status.Draft() && !withDrafts(caller) {
		return InvoicePage{}, nil
	}
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Invoice, error) {
		anyone := customer == domain.CustomerID{}
		switch {
		case anyone && f.Status == nil:
			arg := sqlc.ListInvoicesParams{TenantID: caller.TenantID, AfterID: p.After, BeforeID: p.Before, RowLimit: p.Limit(), WithDrafts: withDrafts(caller)}
			if p.Backward {
				return q.ListInvoicesBackward(ctx, sqlc.ListInvoicesBackwardParams(arg))
			}
			return q.ListInvoices(ctx, arg)
		case anyone:
			arg := sqlc.ListInvoicesOfStatusParams{TenantID: caller.TenantID, Status: string(*f.Status), AfterID: domain.UUID(p.After), BeforeID: domain.UUID(p.Before), RowLimit: p.Limit()}
			if p.Backward {
				return q.ListInvoicesOfStatusBackward(ctx, sqlc.ListInvoicesOfStatusBackwardParams(arg))
			}
			return q.ListInvoicesOfStatus(ctx, arg)
		case f.Status == nil:
			return invoicesOf(ctx, q, caller, []domain.CustomerID{customer}, p)
		}
		arg := sqlc.ListInvoicesOfCustomerOfStatusParams{
			TenantID: caller.TenantID, CustomerID: customer, Status: string(*f.Status), AfterID: domain.UUID(p.After), BeforeID: domain.UUID(p.Before), RowLimit: p.Limit(),
		}
		if p.Backward {
			return q.ListInvoicesOfCustomerOfStatusBackward(ctx, sqlc.ListInvoicesOfCustomerOfStatusBackwardParams(arg))
		}
		return q.ListInvoicesOfCustomerOfStatus(ctx, arg)
	})
	return paging.Cut(p, rows), err
}

// InvoicesOf answers each customer's page of invoices at its place, in order of creation.
func (s *Service) InvoicesOf(ctx context.Context, caller auth.Caller, customers []*sqlc.Customer, p paging.Request[domain.InvoiceID]) ([]InvoicePage, error) {
	ids := paging.IDs(customers, func(c *sqlc.Customer) domain.CustomerID { return c.ID })
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Invoice, error) {
		return invoicesOf(ctx, q, caller, ids, p)
	})
	return paging.CutEach(p, paging.Group(ids, rows, func(i *sqlc.Invoice) domain.CustomerID { return i.CustomerID })), err
}

func invoicesOf(ctx context.Context, q *sqlc.Queries, caller auth.Caller, customers []domain.CustomerID, p paging.Request[domain.InvoiceID]) ([]*sqlc.Invoice, error) {
	arg := sqlc.ListInvoicesOfCustomersParams{
		TenantID: caller.TenantID, CustomerIds: customers, AfterID: p.After, BeforeID: p.Before, RowLimit: p.Limit(), WithDrafts: withDrafts(caller),
	}
	if p.Backward {
		return q.ListInvoicesOfCustomersBackward(ctx, sqlc.ListInvoicesOfCustomersBackwardParams(arg))
	}
	return q.ListInvoicesOfCustomers(ctx, arg)
}

// withDrafts says whether the caller knows of drafts: to a customer they are not there.
func withDrafts(caller auth.Caller) bool { return caller.Role != domain.RoleCustomer }

// NumberKey is where an invoice stands in its series.
type NumberKey struct {
	PeriodStart domain.Date
	Sequence    int64
}

// NumbersOf answers each series' page of invoices at its place, in the order of their numbers.
func (s *Service) NumbersOf(ctx context.Context, caller auth.Caller, series []*sqlc.InvoiceSeries, p paging.Request[NumberKey]) ([]InvoicePage, error) {
	ids := seriesIDs(series)
	arg := sqlc.ListInvoicesOfSeriesParams{
		TenantID: caller.TenantID, SeriesIds: ids, RowLimit: p.Limit(),
		AfterPeriod: p.After.PeriodStart, AfterSequence: p.After.Sequence,
		BeforePeriod: p.Before.PeriodStart, BeforeSequence: p.Before.Sequence,
	}
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Invoice, error) {
		if p.Backward {
			return q.ListInvoicesOfSeriesBackward(ctx, sqlc.ListInvoicesOfSeriesBackwardParams(arg))
		}
		return q.ListInvoicesOfSeries(ctx, arg)
	})
	return paging.CutEach(p, paging.Group(ids, rows, func(i *sqlc.Invoice) domain.SeriesID { return *i.SeriesID })), err
}
