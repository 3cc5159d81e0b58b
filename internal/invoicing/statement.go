package invoicing

import (
	"context"
	"fmt"

	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// take takes the numbers of allocations from one series and for one day, in their order, by one
// statement: all of them or none.
func take(ctx context.Context, tx txn.Tx, of []*allocation, issueDate *domain.Date) ([]*sqlc.Invoice, error) {
	rows, err := tx.AllocateInvoices(ctx, params(of, tx.Now, issueDate))
	switch {
	case err != nil:
		return nil, err
	case len(rows) == 0:
		return nil, errMoveCounter
	case len(rows) != len(of):
		return nil, fmt.Errorf("%d allocations made %d invoices", len(of), len(rows))
	}
	made := make(map[domain.InvoiceID]*sqlc.AllocateInvoicesRow, len(rows))
	for _, row := range rows {
		made[row.ID] = row
	}
	invoices := make([]*sqlc.Invoice, len(of))
	for i, a := range of {
		invoices[i] = a.invoice(made[a.id], tx.Now)
	}
	return invoices, nil
}

// invoice is the row that the statement has made, without reading it: what was sent, and what was decided
// under the counter's lock. To read all of its columns back costs a tenth of a number's time.
func (a *allocation) invoice(made *sqlc.AllocateInvoicesRow, now domain.Version) *sqlc.Invoice {
	series := a.in.SeriesID
	return &sqlc.Invoice{
		TenantID: a.caller.TenantID, ID: a.id, CustomerID: a.in.CustomerID, Kind: domain.InvoiceDirect, Status: domain.InvoicePending,
		SeriesID: &series, PeriodStart: made.PeriodStart, Sequence: made.Sequence, Number: made.Number, IssueDate: made.IssueDate,
		Currency: a.in.Currency, TotalMinor: a.amounts.Total, TaxMinor: a.amounts.Tax, LinesFrom: 1,
		SellerRevision: made.SellerRevision, BuyerRevision: made.BuyerRevision,
		OperationID: a.op.ID, OperationFingerprint: a.op.Fingerprint, CreatedBy: a.op.By, CreatedAt: now.Time, UpdatedAt: now,
	}
}

// params are the statement's, for allocations of one series.
func params(of []*allocation, now domain.Version, issueDate *domain.Date) sqlc.AllocateInvoicesParams {
	p := sqlc.AllocateInvoicesParams{
		TenantID: of[0].caller.TenantID, SeriesID: of[0].in.SeriesID, IssueDate: issueDate, Now: now.Time,
	}
	for _, a := range of {
		p.Ids = append(p.Ids, domain.UUID(a.id))
		p.CustomerIds = append(p.CustomerIds, domain.UUID(a.in.CustomerID))
		p.Currencies = append(p.Currencies, string(a.in.Currency))
		p.TotalsMinor = append(p.TotalsMinor, int64(a.amounts.Total))
		p.TaxesMinor = append(p.TaxesMinor, int64(a.amounts.Tax))
		p.OperationIds = append(p.OperationIds, domain.UUID(a.op.ID))
		p.OperationFingerprints = append(p.OperationFingerprints, a.op.Fingerprint)
		p.CreatedBys = append(p.CreatedBys, a.op.By)
		for i, line := range a.in.Lines {
			p.LineInvoiceIds = append(p.LineInvoiceIds, domain.UUID(a.id))
			p.LinePositions = append(p.LinePositions, int32(i+1))
			p.LineDescriptions = append(p.LineDescriptions, line.Description)
			p.LineQuantities = append(p.LineQuantities, int64(line.Quantity))
			p.LineUnitAmounts = append(p.LineUnitAmounts, int64(line.UnitAmountMinor))
			rate, treatment := taxColumns(line)
			p.LineTaxRates = append(p.LineTaxRates, rate)
			p.LineTaxTreatments = append(p.LineTaxTreatments, treatment)
			p.LineTaxesMinor = append(p.LineTaxesMinor, int64(a.amounts.Lines[i].Tax))
		}
	}
	return p
}

// taxColumns are a line's rate and treatment as array parameters have them; empty for none.
func taxColumns(line domain.InvoiceLineInput) (rate, treatment string) {
	if line.TaxRate == nil {
		return "", ""
	}
	return line.TaxRate.Text('f'), string(line.Treatment())
}
