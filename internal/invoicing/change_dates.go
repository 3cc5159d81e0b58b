package invoicing

import (
	"context"

	"countersign/internal/domain"
	"countersign/sqlc"
)

// refuseContradicted refuses entries whose days contradict what was issued here: numbers are chronological. That
// the days contradict one another is the other system's affair, and the audit tells it.
func (c *change) refuseContradicted(ctx context.Context, q *sqlc.Queries) error {
	runs := domain.DatedRuns(c.entries)
	if len(runs) == 0 {
		return nil
	}
	arg := sqlc.ListContradictedRunsParams{TenantID: c.caller.TenantID, SeriesID: &c.period.series.ID, PeriodStart: &c.period.start}
	for _, r := range runs {
		arg.FirstNumbers, arg.LastNumbers = append(arg.FirstNumbers, r.First), append(arg.LastNumbers, r.Last)
		arg.EarliestDays, arg.LatestDays = append(arg.EarliestDays, r.Earliest.String()), append(arg.LatestDays, r.Latest.String())
	}
	rows, err := q.ListContradictedRuns(ctx, arg)
	if err != nil {
		return err
	}
	faults := &domain.Faults{}
	for _, row := range rows {
		below, above := domain.NumberedOn{Number: row.BelowNumber, Day: row.BelowDate}, domain.NumberedOn{Number: row.AboveNumber, Day: row.AboveDate}
		runs[row.Run-1].Contradicts(below, above, faults)
	}
	return faults.Err(c.input)
}
