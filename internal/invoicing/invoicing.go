// Package invoicing says what happens to series, numbers and invoices, and to the customers they
// are addressed to. Its use cases read as a short story: lock or read, let the domain decide,
// write with a guard, return.
package invoicing

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/paging"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// Service holds the use cases.
type Service struct {
	db     *txn.DB
	joined *joined // nil: each allocation has a transaction of its own
}

// New makes a Service of a database. Its allocations are joined, within default bounds.
func New(db *txn.DB) *Service { return (&Service{db: db}).WithJoining(Joining{}) }

// notFound is NOT_FOUND where a row was expected, about a field of the input.
func notFound(err error, noun, field string) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return domain.Refuse(domain.CodeNotFound, domain.Input(field), "no such %s", noun).Because(err)
	}
	return err
}

// CustomersByID answers each id at its place, nil where there is none.
func (s *Service) CustomersByID(ctx context.Context, caller auth.Caller, ids []domain.CustomerID) ([]*sqlc.Customer, error) {
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Customer, error) {
		return q.GetCustomers(ctx, sqlc.GetCustomersParams{TenantID: caller.TenantID, Ids: ids})
	})
	return paging.InOrder(ids, rows, func(c *sqlc.Customer) (domain.CustomerID, bool) { return c.ID, caller.Sees(c.ID) }), err
}

// SeriesByID answers each id at its place, nil where there is none.
func (s *Service) SeriesByID(ctx context.Context, caller auth.Caller, ids []domain.SeriesID) ([]*sqlc.InvoiceSeries, error) {
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.InvoiceSeries, error) {
		return q.GetSeries(ctx, sqlc.GetSeriesParams{TenantID: caller.TenantID, Ids: ids})
	})
	return paging.InOrder(ids, rows, func(r *sqlc.InvoiceSeries) (domain.SeriesID, bool) { return r.ID, true }), err
}

// InvoicesByID answers each id at its place, nil where there is none.
func (s *Service) InvoicesByID(ctx context.Context, caller auth.Caller, ids []domain.InvoiceID) ([]*sqlc.Invoice, error) {
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Invoice, error) {
		return q.GetInvoices(ctx, sqlc.GetInvoicesParams{TenantID: caller.TenantID, Ids: ids})
	})
	return paging.InOrder(ids, rows, func(i *sqlc.Invoice) (domain.InvoiceID, bool) { return i.ID, sees(caller, i) }), err
}

// sees says whether the caller may know of an invoice: to a customer drafts are not there.
func sees(caller auth.Caller, i *sqlc.Invoice) bool {
	return caller.Sees(i.CustomerID) && (withDrafts(caller) || !i.Status.Draft())
}

// LinesOf answers each invoice's lines at its place, in order.
func (s *Service) LinesOf(ctx context.Context, caller auth.Caller, invoices []*sqlc.Invoice) ([][]*Line, error) {
	ids, place := make([]domain.InvoiceID, len(invoices)), make(map[domain.InvoiceID]int, len(invoices))
	for i, invoice := range invoices {
		ids[i], place[invoice.ID] = invoice.ID, i
	}
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.InvoiceLine, error) {
		return q.ListInvoiceLines(ctx, sqlc.ListInvoiceLinesParams{TenantID: caller.TenantID, InvoiceIds: ids})
	})
	lines := make([][]*Line, len(invoices))
	for _, row := range rows {
		i := place[row.InvoiceID]
		lines[i] = append(lines[i], &Line{row, invoices[i].Currency})
	}
	// The same invoice may stand in the list twice.
	for i, invoice := range invoices {
		lines[i] = lines[place[invoice.ID]]
	}
	return lines, err
}
