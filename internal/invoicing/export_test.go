package invoicing

import (
	"context"

	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// Issue is what IssueCreditNote does with the invoice that it has read.
func (in IssueCreditNoteInput) Issue(ctx context.Context, tx txn.Tx, op domain.Operation, invoice *sqlc.Invoice) error {
	_, err := crediting{in: in, op: op, id: domain.NewID[domain.InvoiceID](), step: domain.NewID[domain.UUID]()}.issue(ctx, tx, invoice)
	return err
}
