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

// CreateDraftInvoiceInput asks for an invoice without a number.
type CreateDraftInvoiceInput struct {
	CustomerID     domain.CustomerID         `json:"customerId"`
	Currency       domain.CurrencyCode       `json:"currency"`
	Lines          []domain.InvoiceLineInput `json:"lines"`
	IdempotencyKey *string                   `json:"-"`
}

// CreateDraft makes a draft: nothing is asked of anybody yet.
func (s *Service) CreateDraft(ctx context.Context, caller auth.Caller, in CreateDraftInvoiceInput) (txn.Outcome[*sqlc.Invoice], error) {
	amounts, err := domain.TotalOfLines(in.Lines)
	if err != nil {
		return txn.Outcome[*sqlc.Invoice]{}, err
	}
	op, err := caller.Operation("createDraftInvoice", "", in.IdempotencyKey, in)
	if err != nil {
		return txn.Outcome[*sqlc.Invoice]{}, err
	}
	id, lines := domain.NewID[domain.InvoiceID](), columnsOf(in.Lines, amounts)
	return txn.Run(ctx, s.db, txn.Write[*sqlc.Invoice]{
		Operation: op, OneStatement: true,
		Apply: func(ctx context.Context, tx txn.Tx) (*sqlc.Invoice, error) {
			return tx.InsertDraft(ctx, sqlc.InsertDraftParams{
				TenantID: caller.TenantID, ID: id, CustomerID: in.CustomerID, Currency: in.Currency, TotalMinor: amounts.Total, TaxMinor: amounts.Tax,
				OperationID: op.ID, OperationFingerprint: op.Fingerprint, CreatedBy: op.By, CreatedAt: tx.Now.Time, UpdatedAt: tx.Now,
				LineDescriptions: lines.descriptions, LineQuantities: lines.quantities, LineUnitAmounts: lines.unitAmounts,
				LineTaxRates: lines.taxRates, LineTaxTreatments: lines.taxTreatments, LineTaxesMinor: lines.taxes,
			})
		},
		Find: func(ctx context.Context, q *sqlc.Queries) (found txn.Found[*sqlc.Invoice], err error) {
			row, err := q.FindInvoiceOfOperation(ctx, sqlc.FindInvoiceOfOperationParams{TenantID: caller.TenantID, OperationID: op.ID})
			if err != nil {
				return found, err
			}
			return txn.Found[*sqlc.Invoice]{Value: row, Fingerprint: row.OperationFingerprint, Own: row.ID == id}, nil
		},
	})
}

// lineColumns are lines as array parameters have them.
type lineColumns struct {
	descriptions, taxRates, taxTreatments []string
	quantities, unitAmounts, taxes        []int64
}

func columnsOf(lines []domain.InvoiceLineInput, amounts domain.InvoiceAmounts) (c lineColumns) {
	for i, line := range lines {
		rate, treatment := taxColumns(line)
		c.descriptions = append(c.descriptions, line.Description)
		c.quantities = append(c.quantities, int64(line.Quantity))
		c.unitAmounts = append(c.unitAmounts, int64(line.UnitAmountMinor))
		c.taxRates = append(c.taxRates, rate)
		c.taxTreatments = append(c.taxTreatments, treatment)
		c.taxes = append(c.taxes, int64(amounts.Lines[i].Tax))
	}
	return c
}

// UpdateDraftInvoiceInput asks to replace the lines of a draft.
type UpdateDraftInvoiceInput struct {
	InvoiceID      domain.InvoiceID          `json:"invoiceId"`
	Version        domain.Version            `json:"version"`
	Lines          []domain.InvoiceLineInput `json:"lines"`
	IdempotencyKey *string                   `json:"-"`
}

// UpdateDraft replaces the lines of a draft. Those that were there stay in the database before them.
func (s *Service) UpdateDraft(ctx context.Context, caller auth.Caller, in UpdateDraftInvoiceInput) (txn.Outcome[*sqlc.Invoice], error) {
	amounts, err := domain.TotalOfLines(in.Lines)
	if err != nil {
		return txn.Outcome[*sqlc.Invoice]{}, err
	}
	op, err := caller.Operation("updateDraftInvoice", "", in.IdempotencyKey, in)
	if err != nil {
		return txn.Outcome[*sqlc.Invoice]{}, err
	}
	lines := columnsOf(in.Lines, amounts)
	return Grant(ctx, s.db, Wish{Tenant: caller.TenantID, Op: op, Invoice: in.InvoiceID,
		Decide: func(_ context.Context, _ txn.Tx, invoice *sqlc.Invoice) (Move, error) {
			if invoice.Status != domain.InvoiceDraft {
				return Move{}, domain.IllegalInvoiceMove(invoice.Status, domain.InvoiceDraft)
			}
			return Move{To: domain.InvoiceDraft}, domain.CheckVersion(&in.Version, invoice.UpdatedAt)
		},
		Make: func(ctx context.Context, tx txn.Tx, invoice *sqlc.Invoice, m Move) (*sqlc.Invoice, error) {
			first, err := tx.NextInvoiceLine(ctx, sqlc.NextInvoiceLineParams{TenantID: invoice.TenantID, InvoiceID: invoice.ID})
			if err != nil {
				return nil, err
			}
			edited, err := tx.ReplaceDraftLines(ctx, sqlc.ReplaceDraftLinesParams{
				TenantID: invoice.TenantID, ID: invoice.ID, LinesFrom: first, LinePositions: positionsFrom(first, len(in.Lines)), TotalMinor: amounts.Total, TaxMinor: amounts.Tax,
				ExpectedUpdatedAt: invoice.UpdatedAt, NextVersion: invoice.UpdatedAt.Next(tx.Now.Time),
				LineDescriptions: lines.descriptions, LineQuantities: lines.quantities, LineUnitAmounts: lines.unitAmounts,
				LineTaxRates: lines.taxRates, LineTaxTreatments: lines.taxTreatments, LineTaxesMinor: lines.taxes,
			})
			if errors.Is(err, pgx.ErrNoRows) {
				return nil, txn.ErrRefused
			}
			if err != nil {
				return nil, err
			}
			return edited, Remember(ctx, tx, invoice, m)
		}})
}

// positionsFrom are n positions of lines.
func positionsFrom(first int32, n int) []int32 {
	positions := make([]int32, n)
	for i := range positions {
		positions[i] = first + int32(i) //nolint:gosec // an invoice has at most MaxInvoiceLines
	}
	return positions
}

// DeleteDraftInvoiceInput asks to give a draft up.
type DeleteDraftInvoiceInput struct {
	InvoiceID      domain.InvoiceID `json:"invoiceId"`
	Version        *domain.Version  `json:"version"`
	Reason         *string          `json:"reason"`
	IdempotencyKey *string          `json:"-"`
}

// DeleteDraft gives a draft up. It never had a number, so it leaves no hole; who deleted it stays
// known. A draft that is deleted already is answered as it is.
func (s *Service) DeleteDraft(ctx context.Context, caller auth.Caller, in DeleteDraftInvoiceInput) (txn.Outcome[*sqlc.Invoice], error) {
	if in.Reason != nil {
		if err := domain.CheckText(domain.Input("reason"), *in.Reason, 500); err != nil {
			return txn.Outcome[*sqlc.Invoice]{}, err
		}
	}
	op, err := caller.Operation("deleteDraftInvoice", "", in.IdempotencyKey, in)
	if err != nil {
		return txn.Outcome[*sqlc.Invoice]{}, err
	}
	return Grant(ctx, s.db, Wish{Tenant: caller.TenantID, Op: op, Invoice: in.InvoiceID,
		Decide: func(_ context.Context, _ txn.Tx, invoice *sqlc.Invoice) (Move, error) {
			if invoice.Status == domain.InvoiceDeleted {
				return Move{}, ErrMoved
			}
			if err := invoice.Status.CheckMove(domain.InvoiceDeleted); err != nil {
				return Move{}, err
			}
			return Move{To: domain.InvoiceDeleted, Reason: in.Reason}, domain.CheckVersion(in.Version, invoice.UpdatedAt)
		}})
}

// FinalizeInvoiceInput asks for the number of a draft.
type FinalizeInvoiceInput struct {
	InvoiceID      domain.InvoiceID `json:"invoiceId"`
	Version        *domain.Version  `json:"version"`
	SeriesID       *domain.SeriesID `json:"seriesId"`
	IssueDate      *domain.Date     `json:"issueDate"`
	IdempotencyKey *string          `json:"-"`
}

// Finalize makes a draft final: it is numbered, and its parties are frozen. The number is given once,
// however often and however concurrently it is asked for: an invoice that has one is answered as it
// is, unless another series or day was asked for.
func (s *Service) Finalize(ctx context.Context, caller auth.Caller, in FinalizeInvoiceInput) (txn.Outcome[*sqlc.Invoice], error) {
	op, err := caller.Operation("finalizeInvoice", "", in.IdempotencyKey, in)
	if err != nil {
		return txn.Outcome[*sqlc.Invoice]{}, err
	}
	out, err := Grant(ctx, s.db, Wish{Tenant: caller.TenantID, Op: op, Invoice: in.InvoiceID,
		Decide: func(ctx context.Context, tx txn.Tx, invoice *sqlc.Invoice) (m Move, err error) {
			switch {
			case invoice.Kind == domain.InvoiceDirect && invoice.Number != nil && in.as(invoice):
				return m, ErrMoved
			case invoice.Number != nil:
				return m, domain.NumberedOtherwise(invoice.Status, *invoice.Number, *invoice.SeriesID, *invoice.IssueDate)
			case invoice.Status != domain.InvoiceDraft: // a month is made final by its close
				return m, domain.IllegalInvoiceMove(invoice.Status, domain.InvoicePending)
			}
			if err := domain.CheckVersion(in.Version, invoice.UpdatedAt); err != nil {
				return m, err
			}
			n, err := NumberBy(ctx, tx.Queries, invoice.TenantID, domain.DocumentInvoice, in.SeriesID, in.IssueDate)
			return Move{To: domain.InvoicePending, Number: n}, err
		}})
	return out, aboutSeries(err)
}

// as says whether an invoice was finalised as it is asked for.
func (in FinalizeInvoiceInput) as(invoice *sqlc.Invoice) bool {
	return (in.SeriesID == nil || *in.SeriesID == *invoice.SeriesID) && (in.IssueDate == nil || in.IssueDate.Equal(invoice.IssueDate.Time))
}
