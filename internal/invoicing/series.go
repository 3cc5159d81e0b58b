package invoicing

import (
	"context"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/paging"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// CreateInvoiceSeriesInput asks for a series of invoice numbers.
type CreateInvoiceSeriesInput struct {
	Code                 string               `json:"code"`
	Format               *domain.NumberFormat `json:"format"`
	TimeZone             *string              `json:"timeZone"`
	FiscalYearStartMonth *int32               `json:"fiscalYearStartMonth"`
	IdempotencyKey       *string              `json:"-"`
}

// CreateSeries makes a series together with its counter.
func (s *Service) CreateSeries(ctx context.Context, caller auth.Caller, in CreateInvoiceSeriesInput) (txn.Outcome[*sqlc.InvoiceSeries], error) {
	op, err := caller.Operation("createInvoiceSeries", "", in.IdempotencyKey, in)
	if err != nil {
		return txn.Outcome[*sqlc.InvoiceSeries]{}, err
	}
	row, err := newSeries(caller.TenantID, op, in)
	if err != nil {
		return txn.Outcome[*sqlc.InvoiceSeries]{}, err
	}
	return txn.Run(ctx, s.db, txn.Write[*sqlc.InvoiceSeries]{
		Operation: op, OneStatement: true,
		Apply: func(ctx context.Context, tx txn.Tx) (*sqlc.InvoiceSeries, error) {
			row.CreatedAt = tx.Now.Time
			return tx.InsertSeries(ctx, row)
		},
		Find: func(ctx context.Context, q *sqlc.Queries) (txn.Found[*sqlc.InvoiceSeries], error) {
			found, err := q.FindSeriesOfOperation(ctx, sqlc.FindSeriesOfOperationParams{TenantID: caller.TenantID, OperationID: op.ID})
			if err != nil {
				return txn.Found[*sqlc.InvoiceSeries]{}, err
			}
			return txn.Found[*sqlc.InvoiceSeries]{Value: found, Fingerprint: found.OperationFingerprint, Own: found.ID == row.ID}, nil
		},
	})
}

// neverReset is the period of a series that never starts anew.
var neverReset = domain.NewDate(1, 1, 1)

// newSeries checks the input and fills in what it leaves out.
func newSeries(tenant domain.TenantID, op domain.Operation, in CreateInvoiceSeriesInput) (sqlc.InsertSeriesParams, error) {
	row := sqlc.InsertSeriesParams{
		TenantID: tenant, ID: domain.NewID[domain.SeriesID](), Code: in.Code, Document: domain.DocumentInvoice,
		Format: domain.DefaultNumberFormat, TimeZone: "UTC", FiscalYearStart: 1, PeriodStart: neverReset,
		OperationID: op.ID, OperationFingerprint: op.Fingerprint, CreatedBy: op.By,
	}
	if in.Format != nil {
		row.Format = *in.Format
	}
	if in.TimeZone != nil {
		row.TimeZone = *in.TimeZone
	}
	if in.FiscalYearStartMonth != nil {
		row.FiscalYearStart = *in.FiscalYearStartMonth
	}
	if err := domain.ParseSeriesCode(row.Code); err != nil {
		return row, err
	}
	if err := checkTimeZone(row.TimeZone); err != nil {
		return row, err
	}
	if row.FiscalYearStart < 1 || row.FiscalYearStart > 12 {
		return row, domain.BadInputAt(domain.Input("fiscalYearStartMonth"), "a month is 1 to 12")
	}
	row.NumberPattern = row.Format.Pattern(row.Code)
	return row, row.Format.Check(row.Code)
}

func checkTimeZone(name string) error {
	if _, err := domain.ParseTimeZone(name); err != nil {
		return domain.BadInputAt(domain.Input("timeZone"), "%s", err.Error())
	}
	return nil
}

// ListSeries returns a page of the tenant's series, in order of creation.
func (s *Service) ListSeries(ctx context.Context, caller auth.Caller, p paging.Request[domain.SeriesID]) (paging.Page[*sqlc.InvoiceSeries], error) {
	arg := sqlc.ListSeriesParams{TenantID: caller.TenantID, AfterID: p.After, BeforeID: p.Before, RowLimit: p.Limit()}
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.InvoiceSeries, error) {
		if p.Backward {
			return q.ListSeriesBackward(ctx, sqlc.ListSeriesBackwardParams(arg))
		}
		return q.ListSeries(ctx, arg)
	})
	return paging.Cut(p, rows), err
}
