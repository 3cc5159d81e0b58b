package invoicing

import (
	"context"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// change is an import or a resync at work, under the ids it keeps on every run.
type change struct {
	caller auth.Caller
	op     domain.Operation
	id     domain.UUID
	kind   domain.SeriesChangeKind
	reason string
	input  []string // the part of the input that the entries come from
	into   func(ctx context.Context, q *sqlc.Queries) (period, error)
	rows   func(f *domain.Faults) []domain.ImportRow

	progress func(entered, of int) // nil: nobody asks

	// What each run finds for itself.
	period  period
	entries []domain.LedgerEntry // in the order of their numbers
}

// decision is what a change comes to, given where the counter stands.
type decision struct {
	place        domain.LedgerPlace
	before, next int64        // the counter's next number
	issueDate    *domain.Date // the counter's last issue date; nil for none
	reach        int64        // the period's last number
	gaps         tally        // what would be left unexplained
}

// run makes the change take effect. What it is about is looked up and checked within it: asked for again
// under its key, it is answered with what was done, wherever the series stands by then.
func (s *Service) run(ctx context.Context, asked change) (txn.Outcome[*SeriesChange], error) {
	return txn.Run(ctx, s.db, txn.Write[*SeriesChange]{
		Operation: asked.op,
		Apply: func(ctx context.Context, tx txn.Tx) (*SeriesChange, error) {
			c, err := s.checked(ctx, tx.Queries, asked)
			if err != nil {
				return nil, err
			}
			return c.apply(ctx, tx)
		},
		Find: func(ctx context.Context, q *sqlc.Queries) (txn.Found[*SeriesChange], error) {
			row, err := q.FindSeriesChange(ctx, sqlc.FindSeriesChangeParams{TenantID: asked.caller.TenantID, OperationID: asked.op.ID})
			if err != nil {
				return txn.Found[*SeriesChange]{}, err
			}
			series, err := q.GetSeries(ctx, sqlc.GetSeriesParams{TenantID: row.TenantID, Ids: []domain.SeriesID{row.SeriesID}})
			if err != nil {
				return txn.Found[*SeriesChange]{}, err
			}
			return txn.Found[*SeriesChange]{
				Value: &SeriesChange{SeriesChange: row, Series: series[0]}, Fingerprint: row.OperationFingerprint, Own: row.ID == asked.id,
			}, nil
		},
	})
}

// dryRun says what the change would come to, in one snapshot, and writes nothing.
func (s *Service) dryRun(ctx context.Context, asked change) (txn.Outcome[*SeriesChange], error) {
	value, err := txn.Snapshot(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) (*SeriesChange, error) {
		c, err := s.checked(ctx, q, asked)
		if err != nil {
			return nil, err
		}
		counter, err := c.look(ctx, q)
		if err != nil {
			return nil, err
		}
		d, err := c.decide(ctx, q, counter, c.entries)
		if err != nil {
			return nil, err
		}
		out := c.result(d)
		out.DryRun, out.Gaps, out.GapCount, out.entries, out.reach = true, d.gaps.gaps, d.gaps.gapCount, c.entries, d.reach
		return out, nil
	})
	return txn.Outcome[*SeriesChange]{Value: value}, err
}

// look reads where the counter stands, without its lock.
func (c *change) look(ctx context.Context, q *sqlc.Queries) (*sqlc.SeriesCounter, error) {
	counters, err := q.GetSeriesCounters(ctx, sqlc.GetSeriesCountersParams{TenantID: c.caller.TenantID, SeriesIds: []domain.SeriesID{c.period.series.ID}})
	if err != nil {
		return nil, err
	}
	if len(counters) == 0 {
		return nil, domain.Refuse(domain.CodeNotFound, domain.Input("seriesId"), "no such series")
	}
	return counters[0], nil
}

// apply writes the entries before it locks the counter, so that numbers wait only for what must be
// decided under the lock; and it looks before it writes, so that what is refused is refused at once.
func (c *change) apply(ctx context.Context, tx txn.Tx) (*SeriesChange, error) {
	counter, err := c.look(ctx, tx.Queries)
	if err != nil {
		return nil, err
	}
	if d, err := c.decide(ctx, tx.Queries, counter, c.entries); err != nil || d.gaps.gapCount > 0 {
		return nil, c.refuse(d, err)
	}
	if err := c.insertEntries(ctx, tx); err != nil {
		return nil, err
	}
	counter, err = tx.LockSeriesCounter(ctx, sqlc.LockSeriesCounterParams{TenantID: c.caller.TenantID, SeriesID: c.period.series.ID})
	if err != nil {
		return nil, err
	}
	d, err := c.decide(ctx, tx.Queries, counter, nil)
	if err != nil || d.gaps.gapCount > 0 {
		return nil, c.refuse(d, err)
	}
	return c.write(ctx, tx, counter, d)
}

// refuse is the error of a change that would leave numbers unexplained.
func (c *change) refuse(d decision, err error) error {
	if err != nil {
		return err
	}
	return domain.NumbersUnexplained(c.input, d.gaps.gaps, d.gaps.gapCount, d.gaps.numbers)
}

// insertEntries writes the entries, in batches that each are a short statement, and tells how far it has come.
func (c *change) insertEntries(ctx context.Context, tx txn.Tx) error {
	const batch = 5000
	for at := 0; at < len(c.entries); at += batch {
		arg := sqlc.InsertSeriesEntriesParams{
			TenantID: c.caller.TenantID, SeriesID: c.period.series.ID, PeriodStart: c.period.start, ChangeID: c.id,
		}
		end := min(at+batch, len(c.entries))
		for _, e := range c.entries[at:end] {
			arg.FirstNumbers, arg.LastNumbers = append(arg.FirstNumbers, e.First), append(arg.LastNumbers, e.Last)
			arg.States, arg.Reasons = append(arg.States, string(e.State)), append(arg.Reasons, e.Reason)
			reference := ""
			if e.Reference != nil {
				reference = *e.Reference
			}
			arg.IssueDates, arg.ReferenceTexts = append(arg.IssueDates, dayText(e.IssueDate)), append(arg.ReferenceTexts, reference)
		}
		if _, err := tx.InsertSeriesEntries(ctx, arg); err != nil {
			return err
		}
		if c.progress != nil {
			c.progress(end, len(c.entries))
		}
	}
	return nil
}

// decide says what the change comes to. The entries are in the ledger, or else they are handed to it beside
// it. Numbers that are taken, a period that was left at an earlier number, and days that contradict an invoice's, are
// refused.
func (c *change) decide(ctx context.Context, q *sqlc.Queries, counter *sqlc.SeriesCounter, beside []domain.LedgerEntry) (d decision, err error) {
	last, err := c.period.last(ctx, q)
	if err != nil {
		return d, err
	}
	d.place, d.reach = counter.State().Place(c.period.start), last.LastNumber
	if n := len(c.entries); n > 0 {
		d.reach = max(d.reach, c.entries[n-1].Last)
	}
	d.before, d.next = counter.NextNumber, counter.NextNumber
	from := d.before // what lies before is not this change's to explain
	switch d.place {
	case domain.PeriodLeft:
		record, err := c.period.record(ctx, q)
		if err != nil {
			return d, err
		}
		from = 1
		if record != nil {
			if d.reach > record.LastNumber {
				return d, domain.Refuse(domain.CodePeriodClosed, c.input, "the series has left the period that began on %s at number %d", c.period.start, record.LastNumber)
			}
			d.reach, from = record.LastNumber, record.LastNumber+1
		}
	case domain.PeriodAhead:
		d.before, d.next, from = 1, d.reach+1, 1
	case domain.PeriodCurrent:
		d.next = max(d.before, d.reach+1)
		d.reach = d.next - 1
	}
	d.issueDate = c.issueDate(counter, last, d.place)
	if d.gaps, err = c.passFrom(ctx, q, from, beside); err != nil {
		return d, err
	}
	d.gaps.end(d.reach)
	return d, c.refuseContradicted(ctx, q)
}

// passFrom tells the gaps from a number on, and refuses entries whose numbers are taken.
func (c *change) passFrom(ctx context.Context, q *sqlc.Queries, from int64, beside []domain.LedgerEntry) (tally, error) {
	t, err := c.period.pass(ctx, q, from, noBound, beside, nil)
	met := t
	if n := len(c.entries); err == nil && n > 0 && c.entries[0].First < from {
		met, err = c.period.pass(ctx, q, c.entries[0].First, c.entries[n-1].Last, beside, nil)
	}
	if err == nil && met.twinCount > 0 {
		err = domain.NumbersTaken(c.input, met.twins, met.twinCount)
	}
	return t, err
}

// issueDate is the last day on which the series has issued a number, as far as it is known.
func (c *change) issueDate(counter *sqlc.SeriesCounter, last *sqlc.LastLedgerNumberRow, place domain.LedgerPlace) *domain.Date {
	var day domain.Date
	if counter.LastIssueDate != nil && place == domain.PeriodCurrent {
		day = *counter.LastIssueDate
	}
	if c.period.series.Reset != domain.ResetNever && c.period.start.After(day.Time) {
		day = c.period.start // a series that resets is to know when its next period begins
	}
	if last.IssueDate.After(day.Time) && last.IssueDate != domain.UnusedPeriod {
		day = last.IssueDate
	}
	for _, e := range c.entries {
		if e.IssueDate != nil && e.IssueDate.After(day.Time) {
			day = *e.IssueDate
		}
	}
	return some(day)
}

// write moves the locked counter and records the change. A resync that finds nothing to do is recorded too:
// it has been answered, and its key is to answer the same for ever, whatever becomes of the counter.
func (c *change) write(ctx context.Context, tx txn.Tx, counter *sqlc.SeriesCounter, d decision) (*SeriesChange, error) {
	tenant, series := c.caller.TenantID, c.period.series
	left := sqlc.RecordLeftPeriodsParams{TenantID: tenant, SeriesID: series.ID, FromPeriod: counter.PeriodStart, BeforePeriod: c.period.start, ClosedAt: tx.Now.Time}
	moves := d.place == domain.PeriodAhead || d.place == domain.PeriodCurrent && !sameDay(d.issueDate, counter.LastIssueDate)
	switch {
	case d.place == domain.PeriodLeft:
		left.FromPeriod, left.BeforePeriod = c.period.start, domain.Date{Time: c.period.start.AddDate(0, 0, 1)}
		fallthrough
	case d.place == domain.PeriodAhead:
		if _, err := tx.RecordLeftPeriods(ctx, left); err != nil {
			return nil, err
		}
	}
	if moves {
		zone, err := domain.ParseTimeZone(series.TimeZone)
		if err != nil {
			return nil, err
		}
		n := series.Rule().On(*d.issueDate)
		if _, err := tx.MoveSeriesCounter(ctx, sqlc.MoveSeriesCounterParams{
			TenantID: tenant, SeriesID: series.ID, PeriodStart: c.period.start, StartsAnew: d.place == domain.PeriodAhead,
			IssueDate: *d.issueDate, IssueDateEnds: d.issueDate.End(zone), NumberPrefix: n.Prefix, NumberSuffix: n.Suffix, NumberWidth: n.Width,
		}); err != nil {
			return nil, err
		}
	}
	if d.next > d.before {
		if _, err := tx.AdvanceSeriesCounter(ctx, sqlc.AdvanceSeriesCounterParams{
			TenantID: tenant, SeriesID: series.ID, ExpectedNumber: d.before, NextNumber: d.next,
		}); err != nil {
			return nil, refusedIfNone(err)
		}
	}
	seen, err := tx.LastSeriesChange(ctx, sqlc.LastSeriesChangeParams{TenantID: tenant, SeriesID: series.ID})
	if err != nil {
		return nil, err
	}
	out := c.result(d)
	row := *out.SeriesChange
	row.Position, row.ChangedAt = seen+1, tx.Now.Time
	out.SeriesChange, err = tx.InsertSeriesChange(ctx, sqlc.InsertSeriesChangeParams(row))
	return out, err
}

func sameDay(a, b *domain.Date) bool { return a == b || a != nil && b != nil && *a == *b }
