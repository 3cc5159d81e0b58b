package invoicing

import (
	"context"
	"errors"
	"strconv"

	"github.com/jackc/pgx/v5"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// ImportNumbersInput asks to take over numbers that another system has given. It has a list of them, or a CSV.
type ImportNumbersInput struct {
	SeriesID       domain.SeriesID          `json:"seriesId"`
	Period         *domain.Date             `json:"period"` // any day of it
	Numbers        *[]domain.ImportedNumber `json:"numbers"`
	CSV            *string                  `json:"csv"`
	Reason         string                   `json:"reason"`
	DryRun         *bool                    `json:"-"`
	IdempotencyKey *string                  `json:"-"`
	Progress       func(entered, of int)    `json:"-"` // told of entries as they are written; nil: nobody asks
}

// ImportNumbers enters numbers into a series' ledger and moves its counter beyond them; in a dry run, which
// it is unless told otherwise, it says what that would come to. All rows are checked before anything is
// locked, and all their faults are told.
//
// It refuses with INVALID_ROW, NUMBERS_TAKEN, PERIOD_CLOSED, and, where a number below the highest one
// would be accounted for by nothing, NUMBERS_UNEXPLAINED.
func (s *Service) ImportNumbers(ctx context.Context, caller auth.Caller, in ImportNumbersInput) (txn.Outcome[*SeriesChange], error) {
	c, err := newChange(caller, domain.ChangeImport, "importNumbers", in.SeriesID, in.Reason, in.IdempotencyKey, in)
	if err != nil {
		return txn.Outcome[*SeriesChange]{}, err
	}
	c.progress = in.Progress
	switch {
	case (in.CSV == nil) == (in.Numbers == nil):
		return txn.Outcome[*SeriesChange]{}, domain.BadInputAt(domain.Input("numbers"), "an import has numbers or a csv, one of them")
	case in.CSV != nil:
		c.input = domain.Input("csv")
		c.rows = func(f *domain.Faults) []domain.ImportRow { return domain.ReadImportCSV(*in.CSV, f) }
	default:
		c.input = domain.Input("numbers")
		if len(*in.Numbers) > domain.MaxImportRows {
			return txn.Outcome[*SeriesChange]{}, domain.BadInputAt(c.input, "an import has at most %d rows", domain.MaxImportRows)
		}
		c.rows = func(*domain.Faults) (rows []domain.ImportRow) {
			for i, number := range *in.Numbers {
				rows = append(rows, domain.ImportRow{ImportedNumber: number, At: domain.Input("numbers", strconv.Itoa(i))})
			}
			return rows
		}
	}
	c.into = func(ctx context.Context, q *sqlc.Queries) (period, error) {
		return s.importedInto(ctx, q, caller, in.SeriesID, in.Period)
	}
	return s.change(ctx, c, in.DryRun)
}

// ResyncSeriesInput asks to move a counter that is behind what is numbered.
type ResyncSeriesInput struct {
	SeriesID       domain.SeriesID         `json:"seriesId"`
	Explain        []domain.ExplainedRange `json:"explain"`
	Reason         string                  `json:"reason"`
	DryRun         *bool                   `json:"-"`
	IdempotencyKey *string                 `json:"-"`
	Progress       func(entered, of int)   `json:"-"` // told of entries as they are written; nil: nobody asks
}

// ResyncSeries moves the counter of a series to the number after the last one that is in its ledger, and never back;
// in a dry run, which it is unless told otherwise, it says what that would come to. Numbers in between
// that nothing accounts for have to be explained: NUMBERS_UNEXPLAINED. A counter that is not behind stays,
// which is recorded too: as a change from a next number to the same.
func (s *Service) ResyncSeries(ctx context.Context, caller auth.Caller, in ResyncSeriesInput) (txn.Outcome[*SeriesChange], error) {
	c, err := newChange(caller, domain.ChangeResync, "resyncSeries", in.SeriesID, in.Reason, in.IdempotencyKey, in)
	if err != nil {
		return txn.Outcome[*SeriesChange]{}, err
	}
	c.progress, c.input = in.Progress, domain.Input("explain")
	c.rows = func(*domain.Faults) (rows []domain.ImportRow) {
		skipped := domain.ImportedSkipped
		for i, e := range in.Explain {
			rows = append(rows, domain.ImportRow{
				ImportedNumber: domain.ImportedNumber{Number: &e.First, LastNumber: &e.Last, Status: &skipped, Reason: &e.Reason},
				At:             domain.Input("explain", strconv.Itoa(i)),
			})
		}
		return rows
	}
	c.into = func(ctx context.Context, q *sqlc.Queries) (period, error) {
		return s.resynced(ctx, q, caller, in.SeriesID, len(in.Explain) > 0)
	}
	return s.change(ctx, c, in.DryRun)
}

// newChange begins a change.
func newChange(caller auth.Caller, kind domain.SeriesChangeKind, mutation string, series domain.SeriesID, reason string, key *string, in any) (change, error) {
	if err := domain.CheckText(domain.Input("reason"), reason, 500); err != nil {
		return change{}, err
	}
	op, err := caller.Operation(mutation, "", key, in)
	return change{caller: caller, op: op, id: domain.NewID[domain.UUID](), kind: kind, reason: reason}, err
}

// importedInto is the period that an import is into.
func (s *Service) importedInto(ctx context.Context, q *sqlc.Queries, caller auth.Caller, series domain.SeriesID, day *domain.Date) (period, error) {
	p, _, err := s.periodOf(ctx, q, caller, series, day)
	if err != nil {
		return p, err
	}
	today, err := s.today(p.series)
	if err == nil && p.start.After(today.Time) {
		err = domain.BadInputAt(domain.Input("period"), "the period that begins on %s is in the future: it is %s in the series' time zone", p.start, today)
	}
	return p, err
}

// resynced is the period that a resync is about: the latest one that has numbers, or the counter's. Of a
// series that has none it is today's, if something is explained.
func (s *Service) resynced(ctx context.Context, q *sqlc.Queries, caller auth.Caller, series domain.SeriesID, explains bool) (period, error) {
	p, counter, err := s.periodOf(ctx, q, caller, series, nil)
	if err != nil {
		return p, err
	}
	latest, err := q.LastLedgerPeriod(ctx, sqlc.LastLedgerPeriodParams{TenantID: caller.TenantID, SeriesID: &series})
	switch {
	case latest.After(counter.PeriodStart.Time):
		p.start = latest
	case !explains:
		p.start = counter.PeriodStart
	}
	return p, err
}

// checked is the change with its period and its entries, which depend on the day and on where the series
// stands.
func (s *Service) checked(ctx context.Context, q *sqlc.Queries, c change) (*change, error) {
	var err error
	if c.period, err = c.into(ctx, q); err != nil {
		return nil, err
	}
	today, err := s.today(c.period.series)
	if err != nil {
		return nil, err
	}
	faults := &domain.Faults{}
	rows := c.rows(faults)
	c.entries = domain.Importing{Rule: c.period.series.Rule(), Period: c.period.start, Today: today, Reason: c.reason}.Entries(rows, faults)
	if err := faults.Err(c.input); err != nil {
		return nil, err
	}
	if len(c.entries) == 0 && c.kind == domain.ChangeImport {
		return nil, domain.BadInputAt(c.input, "there is nothing to import")
	}
	return &c, nil
}

// change makes the change, or says what it would come to.
func (s *Service) change(ctx context.Context, c change, dryRun *bool) (txn.Outcome[*SeriesChange], error) {
	if dryRun == nil || *dryRun {
		return s.dryRun(ctx, c)
	}
	return s.run(ctx, c)
}

// refusedIfNone is a guard's answer where it found no row.
func refusedIfNone(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return txn.ErrRefused
	}
	return err
}
