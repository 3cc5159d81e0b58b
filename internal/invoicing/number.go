package invoicing

import (
	"context"

	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// defaultSeries is the code of the series that numbers what is not allocated by name.
const defaultSeries = "INV"

// Number is what a final invoice is numbered by.
type Number struct {
	SeriesID    domain.SeriesID
	PeriodStart domain.Date
	Sequence    int64
	Printed     string
	IssueDate   domain.Date
}

// TakeNumber takes the next number of the tenant's default series. It locks the counter, so it is
// the last thing that a transaction does.
func TakeNumber(ctx context.Context, tx txn.Tx, tenant domain.TenantID) (n Number, err error) {
	series, err := tx.FindSeriesByCode(ctx, sqlc.FindSeriesByCodeParams{TenantID: tenant, Code: defaultSeries})
	if err != nil {
		return n, err
	}
	counter, err := tx.LockSeriesCounter(ctx, sqlc.LockSeriesCounterParams{TenantID: tenant, SeriesID: series.ID})
	if err != nil {
		return n, err
	}
	date, err := moveCounter(ctx, tx, series, counter, nil)
	if err != nil {
		return n, err
	}
	taken, err := tx.TakeNumber(ctx, sqlc.TakeNumberParams{TenantID: tenant, SeriesID: series.ID})
	if err != nil {
		return n, err
	}
	printed := domain.Numbering{Prefix: taken.NumberPrefix, Suffix: taken.NumberSuffix, Width: taken.NumberWidth}.Print(taken.NextNumber - 1)
	return Number{series.ID, taken.PeriodStart, taken.NextNumber - 1, printed, date}, nil
}
