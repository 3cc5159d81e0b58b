package metering

import (
	"context"

	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// ApplyFact does to an invoice what a provider says of its payment, in the transaction that takes
// the event in: the exact payment of an invoice that is due pays it; everything else is kept with
// the reason why a person has to look at it.
func ApplyFact(ctx context.Context, tx txn.Tx, tenant domain.TenantID, id domain.InvoiceID, f domain.Fact, op domain.Operation) (result string, err error) {
	invoice, err := tx.LockInvoice(ctx, sqlc.LockInvoiceParams{TenantID: tenant, ID: id})
	if err != nil {
		return "", err
	}
	if f.Kind != domain.FactPaid {
		return "FLAGGED: " + string(f.Kind) + " of an invoice is for a person", nil
	}
	if invoice.PaymentReference != nil && *invoice.PaymentReference == f.PaymentID {
		return "UNCHANGED", nil
	}
	m, err := pay(ctx, tx, invoice, f.Amount, f.PaymentID)
	if refusal := domain.UserErrors(err); refusal != nil {
		return "FLAGGED: " + err.Error(), nil
	}
	if err != nil {
		return "", err
	}
	m.op, m.id = op, domain.NewID[domain.UUID]()
	_, err = m.run(ctx, tx, invoice)
	return "PAID", err
}
