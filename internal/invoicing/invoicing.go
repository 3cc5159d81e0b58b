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
	"countersign/internal/txn"
	"countersign/sqlc"
)

// Service holds the use cases.
type Service struct{ db *txn.DB }

// New makes a Service of a database.
func New(db *txn.DB) *Service { return &Service{db: db} }

// byID answers each id at its place with its row, or with nil where there is none that the caller
// may see: a foreign id answers like an absent one.
func byID[ID comparable, Row any](ids []ID, rows []*Row, id func(*Row) ID, visible func(*Row) bool) []*Row {
	found := make(map[ID]*Row, len(rows))
	for _, row := range rows {
		if visible(row) {
			found[id(row)] = row
		}
	}
	out := make([]*Row, len(ids))
	for i, id := range ids {
		out[i] = found[id]
	}
	return out
}

func anyone[Row any](*Row) bool { return true }

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
	return byID(ids, rows, func(c *sqlc.Customer) domain.CustomerID { return c.ID },
		func(c *sqlc.Customer) bool { return caller.Sees(c.ID) }), err
}

// SeriesByID answers each id at its place, nil where there is none.
func (s *Service) SeriesByID(ctx context.Context, caller auth.Caller, ids []domain.SeriesID) ([]*sqlc.InvoiceSeries, error) {
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.InvoiceSeries, error) {
		return q.GetSeries(ctx, sqlc.GetSeriesParams{TenantID: caller.TenantID, Ids: ids})
	})
	return byID(ids, rows, func(r *sqlc.InvoiceSeries) domain.SeriesID { return r.ID }, anyone), err
}

// InvoicesByID answers each id at its place, nil where there is none.
func (s *Service) InvoicesByID(ctx context.Context, caller auth.Caller, ids []domain.InvoiceID) ([]*sqlc.Invoice, error) {
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Invoice, error) {
		return q.GetInvoices(ctx, sqlc.GetInvoicesParams{TenantID: caller.TenantID, Ids: ids})
	})
	return byID(ids, rows, func(i *sqlc.Invoice) domain.InvoiceID { return i.ID },
		func(i *sqlc.Invoice) bool { return caller.Sees(i.CustomerID) }), err
}

// LinesOf answers each invoice's lines at its place, in order. The invoices are ones that the
// caller was shown.
func (s *Service) LinesOf(ctx context.Context, caller auth.Caller, invoices []domain.InvoiceID) ([][]*sqlc.InvoiceLine, error) {
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.InvoiceLine, error) {
		return q.ListInvoiceLines(ctx, sqlc.ListInvoiceLinesParams{TenantID: caller.TenantID, InvoiceIds: invoices})
	})
	lines := make(map[domain.InvoiceID][]*sqlc.InvoiceLine, len(invoices))
	for _, line := range rows {
		lines[line.InvoiceID] = append(lines[line.InvoiceID], line)
	}
	out := make([][]*sqlc.InvoiceLine, len(invoices))
	for i, id := range invoices {
		out[i] = lines[id]
	}
	return out, err
}
