package invoicing

import (
	"context"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/paging"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// PeriodsOf answers each series' page of the periods that it has left at its place, in their order.
func (s *Service) PeriodsOf(ctx context.Context, caller auth.Caller, series []*sqlc.InvoiceSeries, p paging.Request[domain.Date]) ([]paging.Page[*sqlc.SeriesPeriod], error) {
	arg := sqlc.ListPeriodsOfSeriesParams{TenantID: caller.TenantID, SeriesIds: seriesIDs(series), AfterPeriod: p.After, BeforePeriod: p.Before, RowLimit: p.Limit()}
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.SeriesPeriod, error) {
		if p.Backward {
			return q.ListPeriodsOfSeriesBackward(ctx, sqlc.ListPeriodsOfSeriesBackwardParams(arg))
		}
		return q.ListPeriodsOfSeries(ctx, arg)
	})
	return paging.CutEach(p, paging.Group(arg.SeriesIds, rows, func(r *sqlc.SeriesPeriod) domain.SeriesID { return r.SeriesID })), err
}

// ChangesOf answers each series' page of the imports and resyncs that were made of it at its place, in the
// order in which they were made. A page's key is a change's position.
func (s *Service) ChangesOf(ctx context.Context, caller auth.Caller, series []*sqlc.InvoiceSeries, p paging.Request[int32]) ([]paging.Page[*sqlc.SeriesChange], error) {
	arg := sqlc.ListChangesOfSeriesParams{TenantID: caller.TenantID, SeriesIds: seriesIDs(series), AfterPosition: p.After, BeforePosition: p.Before, RowLimit: p.Limit()}
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.SeriesChange, error) {
		if p.Backward {
			return q.ListChangesOfSeriesBackward(ctx, sqlc.ListChangesOfSeriesBackwardParams(arg))
		}
		return q.ListChangesOfSeries(ctx, arg)
	})
	return paging.CutEach(p, paging.Group(arg.SeriesIds, rows, func(r *sqlc.SeriesChange) domain.SeriesID { return r.SeriesID })), err
}

func seriesIDs(series []*sqlc.InvoiceSeries) []domain.SeriesID {
	return paging.IDs(series, func(s *sqlc.InvoiceSeries) domain.SeriesID { return s.ID })
}
