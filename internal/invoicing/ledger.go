package invoicing

import (
	"context"
	"math"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/paging"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// period is a period of a series.
type period struct {
	series *sqlc.InvoiceSeries
	start  domain.Date
}

// tally is what a pass over a ledger has met so far.
type tally struct {
	covered int64 // the number that the ledger reaches without a gap that is not told below

	issued, imported, voidedElsewhere, skipped int64

	gaps              []*domain.NumberRange // the first of them
	gapCount, numbers int64                 // how many there are, and how many numbers they hold
	twins             []int64
	twinCount         int64

	outOfOrder, firstOutOfOrder int64       // how many numbers are entered with a day before a lower one's, and the first of them
	latest                      domain.Date // the last day that was entered
}

const (
	maxDetails = 100       // how many gaps, twins and voids are told one by one
	stretch    = 1_000_000 // rows that one statement passes over
)

// pass goes once over a period's ledger from a number on, beside entries that are not in it, in stretches that each are one
// statement: neither server nor database holds more than a row of it. It calls progress after each
// stretch.
func (p period) pass(ctx context.Context, q *sqlc.Queries, from, upTo int64, more []domain.LedgerEntry, progress func(number int64)) (t tally, err error) {
	t.covered, err = q.EndOfEntryBefore(ctx, sqlc.EndOfEntryBeforeParams{
		TenantID: p.series.TenantID, SeriesID: p.series.ID, PeriodStart: p.start, Number: from,
	})
	if err != nil {
		return t, err
	}
	t.covered = max(t.covered, from-1)
	arg := sqlc.TallyLedgerParams{
		TenantID: p.series.TenantID, SeriesID: &p.series.ID, PeriodStart: &p.start,
		AfterNumber: from - 1, UpToNumber: &upTo, RowLimit: stretch,
	}
	for _, e := range more {
		arg.FirstNumbers = append(arg.FirstNumbers, e.First)
		arg.LastNumbers = append(arg.LastNumbers, e.Last)
		arg.States = append(arg.States, string(e.State))
		arg.IssueDates = append(arg.IssueDates, dayText(e.IssueDate))
	}
	for {
		arg.Covered, arg.Latest, arg.DetailLimit = t.covered, t.latest, maxDetails
		row, err := q.TallyLedger(ctx, arg)
		if err != nil {
			return t, err
		}
		t.add(row)
		if row.LineCount < stretch {
			return t, nil
		}
		arg.AfterNumber = row.AfterNumber
		if progress != nil {
			progress(row.AfterNumber)
		}
	}
}

// add adds what a stretch has come to.
func (t *tally) add(row *sqlc.TallyLedgerRow) {
	t.covered = row.Covered
	t.issued, t.imported = t.issued+row.Issued, t.imported+row.Imported
	if t.outOfOrder += row.OutOfOrder; t.firstOutOfOrder == 0 {
		t.firstOutOfOrder = row.FirstOutOfOrder
	}
	t.latest = row.Latest
	t.voidedElsewhere, t.skipped = t.voidedElsewhere+row.VoidedElsewhere, t.skipped+row.Skipped
	t.gapCount, t.numbers, t.twinCount = t.gapCount+row.GapCount, t.numbers+row.Unexplained, t.twinCount+row.TwinCount
	for i, first := range row.GapFirsts {
		if len(t.gaps) < maxDetails {
			t.gaps = append(t.gaps, &domain.NumberRange{First: first, Last: row.GapLasts[i]})
		}
	}
	t.twins = append(t.twins, row.Twins[:min(len(row.Twins), maxDetails-len(t.twins))]...)
}

// end says up to which number the ledger is to reach.
func (t *tally) end(last int64) {
	if t.covered >= last {
		return
	}
	if t.gapCount++; len(t.gaps) < maxDetails {
		t.gaps = append(t.gaps, &domain.NumberRange{First: t.covered + 1, Last: last})
	}
	t.numbers, t.covered = t.numbers+last-t.covered, last
}

// noBound is past every number.
const noBound = math.MaxInt64

// LedgerLine is a number of a series, or a run of them with one outcome.
type LedgerLine struct {
	domain.NumberRange
	State     domain.LedgerState
	Number    *string // as it is printed; of a run, as its first is
	IssueDate *domain.Date
	Reference *string
	Reason    *string
	InvoiceID *domain.InvoiceID
}

// line makes a line of a row, in which the zero value stands for none.
func (p period) line(row *sqlc.ListLedgerRow) *LedgerLine {
	l := &LedgerLine{
		NumberRange: domain.NumberRange{First: row.FirstNumber, Last: row.LastNumber}, State: domain.LedgerState(row.State),
		Number: some(row.Number), Reference: some(row.Reference), Reason: some(row.Reason), InvoiceID: some(domain.InvoiceID(row.InvoiceID)),
	}
	if row.IssueDate != domain.UnusedPeriod {
		l.IssueDate = &row.IssueDate
	}
	if l.InvoiceID == nil {
		l.Number = some(p.series.Rule().PrintedIn(p.start, l.IssueDate, l.First))
	}
	return l
}

// dayText is a day as statements are handed it; "" for none.
func dayText(day *domain.Date) string {
	if day == nil {
		return ""
	}
	return day.String()
}

// some is a pointer to a value, nil if it is the zero value.
func some[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

// ListLedger returns a page of a period's ledger, in the order of its numbers. day is any day of the
// period; without one it is the period that the series is in.
func (s *Service) ListLedger(ctx context.Context, caller auth.Caller, series domain.SeriesID, day *domain.Date, p paging.Request[int64]) (paging.Page[*LedgerLine], error) {
	lines, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*LedgerLine, error) {
		of, _, err := s.periodOf(ctx, q, caller, series, day)
		if err != nil {
			return nil, err
		}
		arg := sqlc.ListLedgerParams{
			TenantID: caller.TenantID, SeriesID: &series, PeriodStart: &of.start, AfterNumber: p.After, BeforeNumber: p.Before, RowLimit: p.Limit(),
		}
		var lines []*LedgerLine
		if p.Backward {
			rows, err := q.ListLedgerBackward(ctx, sqlc.ListLedgerBackwardParams(arg))
			for _, row := range rows {
				lines = append(lines, of.line((*sqlc.ListLedgerRow)(row)))
			}
			return lines, err
		}
		rows, err := q.ListLedger(ctx, arg)
		for _, row := range rows {
			lines = append(lines, of.line(row))
		}
		return lines, err
	})
	return paging.Cut(p, lines), err
}

// periodOf finds a period of a series, and where its counter stands, by a day in it; without one it is the period
// that the series is in, or, before its first number, the one of today.
func (s *Service) periodOf(ctx context.Context, q *sqlc.Queries, caller auth.Caller, id domain.SeriesID, day *domain.Date) (p period, counter *sqlc.SeriesCounter, err error) {
	series, err := q.GetSeries(ctx, sqlc.GetSeriesParams{TenantID: caller.TenantID, Ids: []domain.SeriesID{id}})
	if err != nil {
		return p, nil, err
	}
	counters, err := q.GetSeriesCounters(ctx, sqlc.GetSeriesCountersParams{TenantID: caller.TenantID, SeriesIds: []domain.SeriesID{id}})
	if err != nil {
		return p, nil, err
	}
	if len(series) == 0 || len(counters) == 0 {
		return p, nil, domain.Refuse(domain.CodeNotFound, domain.Input("seriesId"), "no such series")
	}
	p, counter = period{series: series[0]}, counters[0]
	if day == nil {
		if p.start = counter.PeriodStart; counter.LastIssueDate != nil {
			return p, counter, nil
		}
		today, err := s.today(p.series)
		if err != nil {
			return p, nil, err
		}
		day = &today
	}
	p.start = p.series.Rule().PeriodStart(*day)
	return p, counter, nil
}

// today is the day in a series' zone.
func (s *Service) today(series *sqlc.InvoiceSeries) (domain.Date, error) {
	zone, err := domain.ParseTimeZone(series.TimeZone)
	return domain.DateOf(s.db.Clock(), zone), err
}
