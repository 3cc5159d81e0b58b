package metering

import (
	"context"
	"errors"

	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// look looks again at a customer's invoices after something was written that an exemption has to do
// with: it lives in another table, which no version of an invoice can see, and what others have not
// committed is invisible. An open invoice of an exempt customer is waived; one that was waived by an
// exemption that has ended is reinstated, with the amount of the row as it is now; a waive whose
// exemption stands is verified.
func (s *Service) look(ctx context.Context, tenant domain.TenantID, customer domain.CustomerID) error {
	for range maxLooks {
		changed, err := s.lookOnce(ctx, tenant, customer)
		if err != nil || !changed {
			return err
		}
	}
	return nil // somebody keeps changing it; the sweep comes back to it
}

const maxLooks = 5

// lookOnce looks at each invoice in a transaction of its own, and says whether it moved one.
func (s *Service) lookOnce(ctx context.Context, tenant domain.TenantID, customer domain.CustomerID) (bool, error) {
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Invoice, error) {
		return q.ListLookedAtInvoices(ctx, sqlc.ListLookedAtInvoicesParams{TenantID: tenant, CustomerID: customer})
	})
	if err != nil {
		return false, err
	}
	moved := false
	for _, row := range rows {
		one, err := s.lookAt(ctx, row)
		if err != nil {
			return moved, err
		}
		moved = moved || one
	}
	return moved, nil
}

// lookAt decides on an invoice and the exemption, both read in this transaction, and writes by the
// guarded update: whatever is moved meanwhile is read again.
func (s *Service) lookAt(ctx context.Context, seen *sqlc.Invoice) (moved bool, err error) {
	op, err := domain.NewOperation(seen.TenantID, by, "lookAtInvoice", "", nil, seen.ID)
	if err != nil {
		return false, err
	}
	id := domain.NewID[domain.UUID]()
	out, err := txn.Run(ctx, s.db, txn.Write[bool]{
		Operation: op,
		Apply: func(ctx context.Context, tx txn.Tx) (bool, error) {
			rows, err := tx.GetInvoices(ctx, sqlc.GetInvoicesParams{TenantID: seen.TenantID, Ids: []domain.InvoiceID{seen.ID}})
			if err != nil {
				return false, err
			}
			invoice := rows[0]
			exempt, err := exemption(ctx, tx.Queries, invoice.TenantID, invoice.CustomerID)
			if err != nil {
				return false, err
			}
			byExemption := invoice.WaivedBy != nil && *invoice.WaivedBy == domain.WaivedByExemption
			switch {
			case invoice.Status == domain.InvoiceOpen && exempt != nil:
				cause := domain.WaivedByExemption
				m := invoicing.Move{To: domain.InvoiceWaived, WaivedBy: &cause, Exemption: exempt, Op: op, ID: id}
				_, err = m.Run(ctx, tx, invoice)
				return true, err
			case byExemption && exempt == nil:
				return s.reinstate(ctx, tx, invoice, op, id)
			case byExemption && invoice.WaiveVerifiedAt == nil:
				return false, verify(ctx, tx, invoice, exempt)
			}
			return false, nil
		},
		Find: func(ctx context.Context, q *sqlc.Queries) (found txn.Found[bool], err error) {
			row, err := q.FindInvoiceMove(ctx, sqlc.FindInvoiceMoveParams{TenantID: seen.TenantID, OperationID: op.ID})
			if err != nil {
				return found, err
			}
			return txn.Found[bool]{Value: true, Fingerprint: row.OperationFingerprint, Own: true}, nil
		},
	})
	if errors.Is(err, txn.ErrRefused) { // moved each time: there is another look
		return true, nil
	}
	return out.Value, err
}

// reinstate takes a waive back whose exemption has ended: to OPEN without a number, to PENDING with
// one. A waive that was verified stands, once its month is closed.
func (s *Service) reinstate(ctx context.Context, tx txn.Tx, invoice *sqlc.Invoice, op domain.Operation, id domain.UUID) (bool, error) {
	if invoice.WaiveVerifiedAt != nil {
		period, err := tx.GetPeriod(ctx, sqlc.GetPeriodParams{TenantID: invoice.TenantID, CustomerID: invoice.CustomerID, Month: *invoice.UsageMonth})
		if err != nil || period.ClosedAt != nil {
			return false, err
		}
	}
	to := domain.InvoiceOpen
	if invoice.Number != nil {
		to = domain.InvoicePending
	}
	_, err := invoicing.Move{To: to, Op: op, ID: id}.Run(ctx, tx, invoice)
	return true, err
}

// verify says that an exemption stands for a waive, on the version that was looked at.
func verify(ctx context.Context, tx txn.Tx, invoice *sqlc.Invoice, exempt *domain.ExemptionID) error {
	_, err := tx.VerifyWaive(ctx, sqlc.VerifyWaiveParams{
		TenantID: invoice.TenantID, ID: invoice.ID, WaiveVerifiedAt: &tx.Now.Time, ExemptionID: exempt,
		ExpectedUpdatedAt: invoice.UpdatedAt, NextVersion: invoice.UpdatedAt.Next(tx.Now.Time),
	})
	if isNoRows(err) {
		return txn.ErrRefused
	}
	return err
}
