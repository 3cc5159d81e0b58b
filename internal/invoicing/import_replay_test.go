package invoicing_test

import (
	"testing"
	"time"

	"countersign/internal/domain"
)

// Proves that a key is looked up before the period: an import into the year that the series was in is answered
// again in the next one, and with another input it is refused as before.
func TestAnImportKeepsItsKeyWhenTheSeriesHasMovedOn(t *testing.T) {
	t.Parallel()
	now := newClock(time.Date(2026, 12, 31, 12, 0, 0, 0, time.UTC))
	s := newShopAt(t, now.now)
	s.use(t, yearly())
	in := s.importing(issued(1, 2))
	(*in.Numbers)[1].Date = date(t, "2026-12-30")
	in.IdempotencyKey = new("import 1")
	first := s.imports(t, in)
	now.set(time.Date(2027, 1, 2, 12, 0, 0, 0, time.UTC))
	s.take(t, s.input())
	out, err := s.ImportNumbers(t.Context(), s.caller, in)
	if err != nil || !out.Replayed || out.Value.ID != first.ID || out.Value.PeriodStart != domain.NewDate(2026, 1, 1) || out.Value.Series.ID != s.series {
		t.Fatalf("again: %+v, %v", out, err)
	}
	if a, err := s.AuditOf(t.Context(), s.caller, out.Value, nil); err != nil || summary(a) != "1 to 2: 0 issued, 0 void, 2 imported, 0 voided elsewhere, 0 skipped" {
		t.Errorf("its audit: %v, %v", a, err)
	}
	in.Reason = "another"
	_, err = s.ImportNumbers(t.Context(), s.caller, in)
	wantCode(t, err, domain.CodeIdempotencyKeyReused)
	in.IdempotencyKey = new("import 2")
	_, err = s.ImportNumbers(t.Context(), s.caller, in)
	wantCode(t, err, domain.CodeInvalidRow)
	s.healthy(t)
}

// The same of a resync, which would be of another period by then.
func TestAResyncKeepsItsKeyWhenTheSeriesHasMovedOn(t *testing.T) {
	t.Parallel()
	now := newClock(time.Date(2026, 12, 31, 12, 0, 0, 0, time.UTC))
	s := newShopAt(t, now.now)
	s.use(t, yearly())
	s.take(t, s.input())
	in := s.resyncing(domain.ExplainedRange{NumberRange: domain.NumberRange{First: 2, Last: 3}, Reason: "torn forms"})
	in.IdempotencyKey = new("resync 1")
	first := s.resync(t, in)
	now.set(time.Date(2027, 1, 2, 12, 0, 0, 0, time.UTC))
	s.takeMany(t, 3)
	out, err := s.ResyncSeries(t.Context(), s.caller, in)
	if err != nil || !out.Replayed || out.Value.ID != first.ID || out.Value.PeriodStart != domain.NewDate(2026, 1, 1) {
		t.Errorf("again: %+v, %v", out, err)
	}
	in.Explain[0].Reason = "another"
	_, err = s.ResyncSeries(t.Context(), s.caller, in)
	wantCode(t, err, domain.CodeIdempotencyKeyReused)
	s.healthy(t)
}
