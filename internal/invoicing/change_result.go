package invoicing

import (
	"context"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// SeriesChange is what an import or a resync has done to a series, or, in a dry run, would do.
type SeriesChange struct {
	*sqlc.SeriesChange
	Series *sqlc.InvoiceSeries
	DryRun bool

	// What a dry run finds that would refuse the change: numbers that it would leave unexplained.
	Gaps     []*domain.NumberRange
	GapCount int64

	entries []domain.LedgerEntry // of a dry run
	reach   int64                // likewise
}

// Period is the first day of the period that was changed; nil if the series never resets.
func (c *SeriesChange) Period() *domain.Date {
	if c.Series.Reset == domain.ResetNever {
		return nil
	}
	return &c.PeriodStart
}

// result is the change as its row will have it.
func (c *change) result(d decision) *SeriesChange {
	n := domain.TallyEntries(c.entries)
	row := &sqlc.SeriesChange{
		TenantID: c.caller.TenantID, SeriesID: c.period.series.ID, ID: c.id, Kind: c.kind, PeriodStart: c.period.start,
		ImportedNumbers: n[domain.LedgerImported], VoidedNumbers: n[domain.LedgerVoidedElsewhere], SkippedNumbers: n[domain.LedgerSkipped],
		NextNumberBefore: d.before, NextNumber: d.next, Reason: c.reason,
		OperationID: c.op.ID, OperationFingerprint: c.op.Fingerprint, ChangedBy: c.op.By,
	}
	if len(c.entries) > 0 {
		row.FirstNumber, row.LastNumber = &c.entries[0].First, &c.entries[len(c.entries)-1].Last
	}
	return &SeriesChange{SeriesChange: row, Series: c.period.series}
}

// EntriesOf are the first entries of a change, in the order of their numbers.
func (s *Service) EntriesOf(ctx context.Context, caller auth.Caller, c *SeriesChange) ([]*LedgerLine, error) {
	of := period{c.Series, c.PeriodStart}
	if c.DryRun || c.FirstNumber == nil {
		var lines []*LedgerLine
		for _, e := range c.entries[:min(len(c.entries), maxDetails)] {
			lines = append(lines, of.entry(e))
		}
		return lines, nil
	}
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.SeriesEntry, error) {
		return q.ListEntriesOfChange(ctx, sqlc.ListEntriesOfChangeParams{
			TenantID: caller.TenantID, SeriesID: c.SeriesID, PeriodStart: c.PeriodStart, FirstNumber: *c.FirstNumber, LastNumber: *c.LastNumber,
			ChangeID: c.ID, RowLimit: maxDetails,
		})
	})
	lines := make([]*LedgerLine, len(rows))
	for i, row := range rows {
		lines[i] = of.entry(domain.LedgerEntry{
			NumberRange: domain.NumberRange{First: row.FirstNumber, Last: row.LastNumber}, State: row.State,
			IssueDate: row.IssueDate, Reference: row.Reference, Reason: row.Reason,
		})
	}
	return lines, err
}

// entry is the line of an entry.
func (p period) entry(e domain.LedgerEntry) *LedgerLine {
	return &LedgerLine{
		NumberRange: e.NumberRange, State: e.State, Number: some(p.series.Rule().PrintedIn(p.start, e.IssueDate, e.First)),
		IssueDate: e.IssueDate, Reference: e.Reference, Reason: &e.Reason,
	}
}

// AuditOf audits the period of a change: as it is, or, of a dry run, as it would be. It tells progress as Audit does.
func (s *Service) AuditOf(ctx context.Context, caller auth.Caller, c *SeriesChange, progress func(done, last int64)) (*Audit, error) {
	if !c.DryRun {
		return s.Audit(ctx, caller, c.SeriesID, &c.PeriodStart, progress)
	}
	return txn.Snapshot(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) (*Audit, error) {
		return period{c.Series, c.PeriodStart}.audit(ctx, q, c.reach, c.entries, progress)
	})
}
