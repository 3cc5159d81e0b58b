package invoicing_test

import (
	"testing"
	"time"

	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/testdb"
)

// resyncing asks for a resync of the shop's series, for real.
func (s *shop) resyncing(explain ...domain.ExplainedRange) invoicing.ResyncSeriesInput {
	return invoicing.ResyncSeriesInput{SeriesID: s.series, Explain: explain, Reason: "restored from a backup", DryRun: new(false)}
}

func (s *shop) resync(t *testing.T, in invoicing.ResyncSeriesInput) *invoicing.SeriesChange {
	t.Helper()
	out, err := s.ResyncSeries(t.Context(), s.caller, in)
	if err != nil {
		t.Fatalf("resync failed: %v", err)
	}
	return out.Value
}

// A counter that a backup has set back answers SERIES_INCONSISTENT; a dry run of the resync says where it would
// go, the resync moves it there and records that, and numbering goes on.
func TestAResyncMendsACounterBehindItsData(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.takeMany(t, 5)
	s.Exec(t, `UPDATE series_counters SET next_number = 3 WHERE series_id = $1`, s.series)
	_, err := s.Allocate(t.Context(), s.caller, s.input())
	wantCode(t, err, domain.CodeSeriesInconsistent)
	in := s.resyncing()
	in.DryRun = nil
	if c := s.resync(t, in); !c.DryRun || c.NextNumberBefore != 3 || c.NextNumber != 6 || c.GapCount != 0 {
		t.Errorf("the dry run says %+v", c.SeriesChange)
	}
	_, err = s.Allocate(t.Context(), s.caller, s.input())
	wantCode(t, err, domain.CodeSeriesInconsistent)
	if c := s.resync(t, s.resyncing()); c.DryRun || c.NextNumberBefore != 3 || c.NextNumber != 6 || c.Position != 1 {
		t.Errorf("the resync says %+v", c.SeriesChange)
	}
	recorded := testdb.Scan[string](t, s.DB, `SELECT format('%s %s %s %s %s', kind, next_number_before, next_number, reason, changed_by) FROM series_changes`)
	if want := "RESYNC 3 6 restored from a backup " + s.caller.TokenID.String(); recorded != want {
		t.Errorf("recorded is %q, want %q", recorded, want)
	}
	if got := s.take(t, s.input()); *got.Sequence != 6 {
		t.Errorf("the next is %d", *got.Sequence)
	}
	s.healthy(t)
}

// A counter that is right, or ahead, stays: nothing is moved back, and it is recorded that nothing was moved.
func TestAResyncNeverMovesACounterBack(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	if c := s.resync(t, s.resyncing()); c.NextNumberBefore != 1 || c.NextNumber != 1 {
		t.Errorf("an unused series: %+v", c.SeriesChange)
	}
	s.takeMany(t, 2)
	if c := s.resync(t, s.resyncing()); c.NextNumberBefore != 3 || c.NextNumber != 3 {
		t.Errorf("a series that is right: %+v", c.SeriesChange)
	}
	s.Exec(t, `UPDATE series_counters SET next_number = 5 WHERE series_id = $1`, s.series)
	if c := s.resync(t, s.resyncing()); c.NextNumber != 5 {
		t.Errorf("a series that is ahead: %+v", c.SeriesChange)
	}
	recorded := testdb.Scan[string](t, s.DB, `SELECT string_agg(format('%s %s to %s', kind, next_number_before, next_number), ', ' ORDER BY position) FROM series_changes`)
	if want := "RESYNC 1 to 1, RESYNC 3 to 3, RESYNC 5 to 5"; recorded != want {
		t.Errorf("recorded are %q, want %q", recorded, want)
	}
	// What a counter has left out is a gap, and can be explained.
	s.wantAudit(t, "1 to 4: 2 issued, 0 void, 0 imported, 0 voided elsewhere, 0 skipped, gap 3 to 4")
	s.resync(t, s.resyncing(domain.ExplainedRange{NumberRange: domain.NumberRange{First: 3, Last: 4}, Reason: "set by hand"}))
	s.wantAudit(t, "1 to 4: 2 issued, 0 void, 0 imported, 0 voided elsewhere, 2 skipped")
	s.healthy(t)
}

// A resync that finds nothing to do, asked for twice at once under one key, is answered once; and its key answers so for
// ever, though the counter has fallen behind since: asked for again it moves nothing, and with another input it is refused.
func TestAResyncThatFindsNothingToDoKeepsItsKey(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.takeMany(t, 2)
	in := s.resyncing()
	in.IdempotencyKey = new("resync 1")
	gate := s.Gate(t, "LockSeriesCounter") // both have looked for their key, and found nothing
	go func() {
		gate.Await(t, 2)
		gate.Open()
	}()
	var ids [2]domain.UUID
	var replayed [2]bool
	together(2, func(i int) {
		out, err := s.ResyncSeries(t.Context(), s.caller, in)
		if err != nil || out.Value.NextNumberBefore != 3 || out.Value.NextNumber != 3 {
			t.Errorf("request %d: %+v, %v", i, out.Value, err)
			return
		}
		ids[i], replayed[i] = out.Value.ID, out.Replayed
	})
	if ids[0] != ids[1] || replayed[0] == replayed[1] {
		t.Errorf("answered %v, replayed %v", ids, replayed)
	}

	s.Exec(t, `UPDATE series_counters SET next_number = 2 WHERE series_id = $1`, s.series)
	out, err := s.ResyncSeries(t.Context(), s.caller, in)
	if err != nil || !out.Replayed || out.Value.ID != ids[0] || out.Value.NextNumber != 3 || s.next(t) != 2 {
		t.Errorf("again: %+v, replayed %v (%v); the counter is at %d", out.Value, out.Replayed, err, s.next(t))
	}
	in.Reason = "another"
	_, err = s.ResyncSeries(t.Context(), s.caller, in)
	wantCode(t, err, domain.CodeIdempotencyKeyReused)
	if c := s.resync(t, s.resyncing()); c.NextNumberBefore != 2 || c.NextNumber != 3 || c.Position != 2 {
		t.Errorf("under another key: %+v", c.SeriesChange)
	}
	s.healthy(t)
}

// Numbers that were lost with the backup are no silence: the resync is refused until they are explained.
func TestAResyncAsksForAnExplanation(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.takeMany(t, 6)
	s.Exec(t, `DELETE FROM invoice_lines WHERE invoice_id IN (SELECT id FROM invoices WHERE sequence IN (4, 5))`)
	s.Exec(t, `DELETE FROM invoices WHERE sequence IN (4, 5)`)
	s.Exec(t, `UPDATE series_counters SET next_number = 2 WHERE series_id = $1`, s.series)
	_, err := s.ResyncSeries(t.Context(), s.caller, s.resyncing())
	wantCode(t, err, domain.CodeNumbersUnexplained)
	if next := testdb.Scan[int](t, s.DB, `SELECT next_number FROM series_counters WHERE series_id = $1`, s.series); next != 2 {
		t.Errorf("a refused resync moved the counter to %d", next)
	}
	lost := domain.ExplainedRange{NumberRange: domain.NumberRange{First: 4, Last: 5}, Reason: "lost with the disk of 3 May"}
	in := s.resyncing(lost)
	in.IdempotencyKey = new("resync 1")
	if c := s.resync(t, in); c.NextNumber != 7 || c.SkippedNumbers != 2 {
		t.Errorf("the resync says %+v", c.SeriesChange)
	}
	out, err := s.ResyncSeries(t.Context(), s.caller, in)
	if err != nil || !out.Replayed || out.Value.NextNumber != 7 {
		t.Errorf("again: %+v, %v", out, err)
	}
	in.Reason = "another"
	_, err = s.ResyncSeries(t.Context(), s.caller, in)
	wantCode(t, err, domain.CodeIdempotencyKeyReused)
	s.wantAudit(t, "1 to 6: 4 issued, 0 void, 0 imported, 0 voided elsewhere, 2 skipped")
	s.healthy(t)
}

// A counter that was set back into a period that the series has left is brought to the period of its last number, on its
// last day; what was left meanwhile is recorded.
func TestAResyncCatchesUpWithThePeriod(t *testing.T) {
	t.Parallel()
	now := newClock(time.Date(2024, 6, 15, 12, 0, 0, 0, time.UTC))
	s := newShopAt(t, now.now)
	s.use(t, yearly())
	s.takeMany(t, 2)
	backup := testdb.Scan[string](t, s.DB, `SELECT row_to_json(c)::text FROM series_counters c WHERE series_id = $1`, s.series)
	for year := 2025; year <= 2026; year++ {
		now.set(time.Date(year, 6, 15, 12, 0, 0, 0, time.UTC))
		s.takeMany(t, 3)
	}
	s.Exec(t, `DELETE FROM series_periods`)
	s.Exec(t, `DELETE FROM series_counters WHERE series_id = $1`, s.series)
	s.Exec(t, `INSERT INTO series_counters SELECT * FROM json_populate_record(NULL::series_counters, $1::json)`, backup)
	s.resync(t, s.resyncing())
	s.healthy(t)
	if got := s.closed(t); got != "2024-01-01: 1 to 2, 2025-01-01: 1 to 3" {
		t.Errorf("closed are %s", got)
	}
	in := s.input()
	in.IssueDate = date(t, "2026-06-14")
	_, err := s.Allocate(t.Context(), s.caller, in)
	wantCode(t, err, domain.CodePeriodClosed)
	if got := s.take(t, s.input()); *got.Number != "Y-2026-00004" {
		t.Errorf("the next is %s", *got.Number)
	}
	s.healthy(t)
}
