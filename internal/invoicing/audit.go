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

// Audit is what became of every number of a period, from 1 to the last.
type Audit struct {
	Series *sqlc.InvoiceSeries
	Start  domain.Date

	LastNumber int64 // 0 if the period has none

	// How many numbers: of the first two by invoices, of the next three by entries.
	Issued, Void                       int64
	Imported, VoidedElsewhere, Skipped int64

	Unexplained int64                 // numbers that nothing accounts for
	GapCount    int64                 // in how many runs
	Gaps        []*domain.NumberRange // the first of them

	DuplicateCount int64   // numbers that are there twice
	Duplicates     []int64 // the first of them

	OutOfOrder      int64 // numbers that are entered with a day before a lower one's: so the other system gave them
	firstOutOfOrder int64

	Voids []*LedgerLine // the first void numbers, with their reasons
}

// Period is the first day of the period; nil if the series never resets.
func (a *Audit) Period() *domain.Date {
	if a.Series.Reset == domain.ResetNever {
		return nil
	}
	return &a.Start
}

// First is the first number, nil if the period has none.
func (a *Audit) First() *int64 {
	if a.LastNumber == 0 {
		return nil
	}
	return new(int64(1))
}

// Last is the last number, nil if the period has none.
func (a *Audit) Last() *int64 { return some(a.LastNumber) }

// FirstOutOfOrder is the first number that is out of order, nil if none is.
func (a *Audit) FirstOutOfOrder() *int64 { return some(a.firstOutOfOrder) }

// Clean says whether each number is accounted for, once.
func (a *Audit) Clean() bool { return a.GapCount == 0 && a.DuplicateCount == 0 }

// Audit goes over a period of a series, once, in one read-only snapshot, whatever is numbered meanwhile.
// day is any day of the period; without one it is the period that the series is in. progress (nil: nobody
// asks) is told how far it has come.
func (s *Service) Audit(ctx context.Context, caller auth.Caller, series domain.SeriesID, day *domain.Date, progress func(done, last int64)) (*Audit, error) {
	return txn.Snapshot(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) (*Audit, error) {
		p, counter, err := s.periodOf(ctx, q, caller, series, day)
		if err != nil {
			return nil, err
		}
		reach, err := p.reach(ctx, q, counter)
		if err != nil {
			return nil, err
		}
		return p.audit(ctx, q, reach, nil, progress)
	})
}

// Periods are the periods of a series that has been numbered in, in order: those it has left, and its own.
func (s *Service) Periods(ctx context.Context, caller auth.Caller, series domain.SeriesID) (starts []domain.Date, err error) {
	return txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) (starts []domain.Date, err error) {
		left, err := q.ListSeriesPeriods(ctx, sqlc.ListSeriesPeriodsParams{TenantID: caller.TenantID, SeriesID: series})
		if err != nil {
			return nil, err
		}
		for _, p := range left {
			starts = append(starts, p.PeriodStart)
		}
		p, _, err := s.periodOf(ctx, q, caller, series, nil)
		return append(starts, p.start), err
	})
}

// reach is the number that the ledger of a period is to reach: where the counter stands in it, or what was
// recorded when it was left, and never less than what is there.
func (p period) reach(ctx context.Context, q *sqlc.Queries, counter *sqlc.SeriesCounter) (int64, error) {
	last, err := p.last(ctx, q)
	if err != nil {
		return 0, err
	}
	if p.start == counter.PeriodStart {
		return max(last.LastNumber, counter.NextNumber-1), nil
	}
	record, err := p.record(ctx, q)
	if record != nil {
		last.LastNumber = max(last.LastNumber, record.LastNumber)
	}
	return last.LastNumber, err
}

// last is how far the period's ledger reaches.
func (p period) last(ctx context.Context, q *sqlc.Queries) (*sqlc.LastLedgerNumberRow, error) {
	return q.LastLedgerNumber(ctx, sqlc.LastLedgerNumberParams{TenantID: p.series.TenantID, SeriesID: &p.series.ID, PeriodStart: &p.start})
}

// record is what was recorded when the period was left; nil if nothing was.
func (p period) record(ctx context.Context, q *sqlc.Queries) (*sqlc.SeriesPeriod, error) {
	record, err := q.FindSeriesPeriod(ctx, sqlc.FindSeriesPeriodParams{TenantID: p.series.TenantID, SeriesID: p.series.ID, PeriodStart: p.start})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return record, err
}

// audit passes over the whole period, beside entries that are not in it.
func (p period) audit(ctx context.Context, q *sqlc.Queries, reach int64, more []domain.LedgerEntry, progress func(done, last int64)) (*Audit, error) {
	told := func(int64) {}
	if progress != nil {
		told = func(number int64) { progress(number, reach) }
	}
	t, err := p.pass(ctx, q, 1, noBound, more, told)
	if err != nil {
		return nil, err
	}
	t.end(reach)
	void, err := q.CountVoidNumbers(ctx, sqlc.CountVoidNumbersParams{TenantID: p.series.TenantID, SeriesID: &p.series.ID, PeriodStart: &p.start})
	if err != nil {
		return nil, err
	}
	voids, err := q.ListVoidNumbers(ctx, sqlc.ListVoidNumbersParams{TenantID: p.series.TenantID, SeriesID: &p.series.ID, PeriodStart: &p.start, RowLimit: maxDetails})
	a := &Audit{
		Series: p.series, Start: p.start, LastNumber: t.covered,
		Issued: t.issued - void, Void: void, Imported: t.imported, VoidedElsewhere: t.voidedElsewhere, Skipped: t.skipped,
		Unexplained: t.numbers, GapCount: t.gapCount, Gaps: t.gaps, DuplicateCount: t.twinCount, Duplicates: t.twins,
		OutOfOrder: t.outOfOrder, firstOutOfOrder: t.firstOutOfOrder,
	}
	for _, row := range voids {
		a.Voids = append(a.Voids, p.line((*sqlc.ListLedgerRow)(row)))
	}
	return a, err
}
