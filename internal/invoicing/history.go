package invoicing

import (
	"context"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/paging"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// Step is a move of an invoice as it is told.
type Step struct{ *sqlc.InvoiceHistory }

// FromStatus is where the invoice stood before; nil for the first step.
func (s *Step) FromStatus() *domain.InvoiceStatus {
	if s.InvoiceHistory.FromStatus == "" {
		return nil
	}
	return &s.InvoiceHistory.FromStatus
}

// created is how an invoice was made: what its own row has kept since, where the server cannot change
// it. It began where its first move found it.
func created(invoice *sqlc.Invoice, moves []*sqlc.InvoiceHistory) *Step {
	began := invoice.Status
	if len(moves) > 0 {
		began = moves[0].FromStatus
	}
	return &Step{&sqlc.InvoiceHistory{
		TenantID: invoice.TenantID, InvoiceID: invoice.ID, Event: "CREATED", ToStatus: began, Detail: invoice.CreditReason,
		OperationID: invoice.OperationID, MovedBy: invoice.CreatedBy, MovedAt: invoice.CreatedAt,
	}}
}

// HistoryOf answers each invoice's history at its place, from how it was made.
func (s *Service) HistoryOf(ctx context.Context, caller auth.Caller, invoices []*sqlc.Invoice) ([][]*Step, error) {
	ids := idsOf(invoices)
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.InvoiceHistory, error) {
		return q.ListInvoiceHistory(ctx, sqlc.ListInvoiceHistoryParams{TenantID: caller.TenantID, InvoiceIds: ids})
	})
	histories := make([][]*Step, len(invoices))
	for i, moves := range paging.Group(ids, rows, func(r *sqlc.InvoiceHistory) domain.InvoiceID { return r.InvoiceID }) {
		histories[i] = append(histories[i], created(invoices[i], moves))
		for _, move := range moves {
			histories[i] = append(histories[i], &Step{move})
		}
	}
	return histories, err
}
