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

// CreateInvoiceSeriesInput asks for a series of invoice numbers. A preset fills in what is left out.
type CreateInvoiceSeriesInput struct {
	Code                 string               `json:"code"`
	Format               *domain.NumberFormat `json:"format"`
	TimeZone             *string              `json:"timeZone"`
	FiscalYearStartMonth *int32               `json:"fiscalYearStartMonth"`

	// Since the fingerprints of inputs without them were first stored.
	Document          *domain.SeriesDocument   `json:"document,omitempty"`
	Preset            *domain.SeriesPreset     `json:"preset,omitempty"`
	Reset             *domain.SeriesReset      `json:"reset,omitempty"`
	MaxLength         *int32                   `json:"maxLength,omitempty"`
	AllowedCharacters *domain.SeriesCharacters `json:"allowedCharacters,omitempty"`
	Capacity          *int64                   `json:"capacity,omitempty"`

	IdempotencyKey *string `json:"-"`
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
		Operation: op,
		Apply: func(ctx context.Context, tx txn.Tx) (*sqlc.InvoiceSeries, error) {
			return insertSeries(ctx, tx, row)
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

// insertSeries inserts a series that prints no number like another of its tenant, and its counter.
func insertSeries(ctx context.Context, tx txn.Tx, row sqlc.InsertSeriesParams) (*sqlc.InvoiceSeries, error) {
	rule := ruleOf(row)
	row.MaxNumber, row.PeriodStart, row.CreatedAt = rule.MaxNumber(), domain.UnusedPeriod, tx.Now.Time
	for range 1000 { // as many as could be made at the same time
		others, err := tx.ListAllSeries(ctx, sqlc.ListAllSeriesParams{TenantID: row.TenantID})
		if err != nil {
			return nil, err
		}
		row.Place = int32(len(others)) + 1
		for _, other := range others {
			// A code that is taken is refused as such; an operation that was run before is replayed.
			if other.Code != row.Code && other.OperationID != row.OperationID && rule.PrintsLike(other.Rule()) {
				return nil, domain.Refuse(domain.CodeInvalidFormat, domain.Input("format"),
					"the series %s, whose format is %s, could print the same numbers as %s", other.Code, other.Format, rule.Format)
			}
		}
		series, err := tx.InsertSeries(ctx, row)
		if !errors.Is(err, pgx.ErrNoRows) {
			return series, err
		}
	}
	return nil, domain.Busy()
}

// newSeries checks the input and fills in what it leaves out: from the preset, else with what
// asks least.
func newSeries(tenant domain.TenantID, op domain.Operation, in CreateInvoiceSeriesInput) (sqlc.InsertSeriesParams, error) {
	row := sqlc.InsertSeriesParams{
		TenantID: tenant, ID: domain.NewID[domain.SeriesID](), Code: in.Code, Document: domain.DocumentInvoice, Preset: in.Preset,
		Reset: domain.ResetNever, TimeZone: "UTC", FiscalYearStart: 1,
		MaxLength: domain.MaxSeriesLength, AllowedCharacters: domain.CharactersPlain, Capacity: domain.DefaultSeriesCapacity,
		OperationID: op.ID, OperationFingerprint: op.Fingerprint, CreatedBy: op.By,
	}
	if in.Preset != nil {
		p := in.Preset.Rule()
		row.Reset, row.Format, row.TimeZone, row.FiscalYearStart = p.Reset, p.Format, p.TimeZone, p.FiscalYearStart
		row.MaxLength, row.AllowedCharacters, row.Capacity = p.MaxLength, p.AllowedCharacters, p.Capacity
	}
	if in.Reset != nil && *in.Reset != row.Reset {
		row.Reset, row.Format = *in.Reset, ""
	}
	if row.Format == "" {
		row.Format = row.Reset.DefaultFormat()
	}
	fill(&row.Format, in.Format)
	fill(&row.Document, in.Document)
	fill(&row.TimeZone, in.TimeZone)
	fill(&row.FiscalYearStart, in.FiscalYearStartMonth)
	fill(&row.MaxLength, in.MaxLength)
	fill(&row.AllowedCharacters, in.AllowedCharacters)
	fill(&row.Capacity, in.Capacity)
	if err := checkTimeZone(row.TimeZone); err != nil {
		return row, err
	}
	rule := ruleOf(row)
	if err := rule.Check(); err != nil {
		return row, err
	}
	row.NumberPattern = row.Format.Pattern(row.Code)
	return row, nil
}

// fill takes what was asked for, if it was.
func fill[T any](field *T, asked *T) {
	if asked != nil {
		*field = *asked
	}
}

func ruleOf(row sqlc.InsertSeriesParams) domain.SeriesRule {
	return domain.SeriesRule{
		Code: row.Code, Format: row.Format, Reset: row.Reset, FiscalYearStart: row.FiscalYearStart,
		MaxLength: row.MaxLength, AllowedCharacters: row.AllowedCharacters, Capacity: row.Capacity, Preset: row.Preset,
	}
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

// CountersOf answers where each series stands, at its place.
func (s *Service) CountersOf(ctx context.Context, caller auth.Caller, series []*sqlc.InvoiceSeries) ([]*sqlc.SeriesCounter, error) {
	ids := seriesIDs(series)
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.SeriesCounter, error) {
		return q.GetSeriesCounters(ctx, sqlc.GetSeriesCountersParams{TenantID: caller.TenantID, SeriesIds: ids})
	})
	return paging.InOrder(ids, rows, func(c *sqlc.SeriesCounter) (domain.SeriesID, bool) { return c.SeriesID, true }), err
}
