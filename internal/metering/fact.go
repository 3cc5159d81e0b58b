package metering

import (
	"context"
	"slices"

	"countersign/internal/domain"
	"countersign/internal/invoicing"
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
	provider := op.By
	known, err := tx.ListPaymentsByReference(ctx, sqlc.ListPaymentsByReferenceParams{TenantID: tenant, Reference: f.PaymentID, InvoiceID: id, Provider: &provider})
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(known, func(p *sqlc.InvoicePayment) bool { return p.InvoiceID == id }) {
		return "UNCHANGED", nil
	}
	if len(known) > 0 {
		return "FLAGGED: the payment is recorded on " + known[0].InvoiceID.String(), nil
	}
	m, err := invoicing.DecidePayment(ctx, tx, invoice, invoicing.Payment{Amount: f.Amount, Reference: f.PaymentID, Provider: &provider}, true)
	if refusal := domain.UserErrors(err); refusal != nil {
		return "FLAGGED: " + err.Error(), nil
	}
	if err != nil {
		return "", err
	}
	m.Op, m.ID = op, domain.NewID[domain.UUID]()
	_, err = m.Run(ctx, tx, invoice)
	return "PAID", err
}
