package invoicing_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/testdb"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// A number is taken by the last statement of its transaction, so that nothing but COMMIT comes while the
// counter is locked; the first of a day moves the counter before it.
func TestANumberIsTakenLast(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	invoice, first, second := s.take(t, s.input()), s.draft(t), s.draft(t)
	credit := invoicing.IssueCreditNoteInput{InvoiceID: invoice.ID, AmountMinor: ptr(domain.Cents(1)), Reason: "sent back"}
	for _, c := range []struct {
		name, last string
		run        func() error
	}{
		{"finalizeInvoice", "MoveInvoice", func() error { _, err := s.finalize(first.ID, nil); return err }},
		{"finalizeInvoice again", "MoveInvoice", func() error { _, err := s.finalize(second.ID, nil); return err }},
		{"issueCreditNote, the first of a day", "", func() error { _, err := s.credit(credit); return err }},
		{"issueCreditNote", "InsertCreditNote", func() error { _, err := s.credit(credit); return err }},
	} {
		sent := s.Sent()
		if err := c.run(); err != nil {
			t.Fatal(err)
		}
		statements := sent()
		if strings.Contains(c.name, "first of a day") {
			if i := slices.Index(statements, "LockSeriesCounter"); i < 0 || fmt.Sprint(statements[i:]) != "[LockSeriesCounter MoveSeriesCounter SeriesEntriesReach InsertCreditNote commit]" {
				t.Errorf("%s: %q", c.name, statements)
			}
			continue
		}
		if n := len(statements); n < 2 || statements[n-1] != "commit" || statements[n-2] != c.last || slices.Contains(statements, "LockSeriesCounter") {
			t.Errorf("%s: %q", c.name, statements)
		}
	}
	s.healthy(t)
}

// Proves the look at the entries in AllocateInvoices, MoveInvoice, InsertCreditNote, and where a counter is
// moved: a counter that has fallen behind numbers of another system gives none of them out again, by
// whatever way to a number. Without the look number 2 is there twice, and the audit says so.
func TestACounterBehindImportedNumbersGivesNoneOut(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	notes := s.use(t, invoicing.CreateInvoiceSeriesInput{Code: "NC", Document: ptr(domain.DocumentCreditNote)})
	invoices := s.newSeries(t, "OLD", "{CODE}-{N:5}")
	for _, series := range []domain.SeriesID{notes.ID, invoices} {
		s.series = series
		s.imports(t, s.importing(issued(1, 2, 3)))
	}
	invoice, draft := s.take(t, s.input()), s.draft(t)
	credit := invoicing.IssueCreditNoteInput{InvoiceID: invoice.ID, AmountMinor: ptr(domain.Cents(1)), Reason: "sent back", SeriesID: &notes.ID}
	if _, err := s.credit(credit); err != nil {
		t.Fatal(err)
	}
	s.Exec(t, "UPDATE series_counters SET next_number = 2 WHERE last_issue_date IS NOT NULL")
	for name, number := range map[string]func() error{
		"allocateInvoice": func() error { _, err := s.Allocate(t.Context(), s.caller, s.input()); return err },
		"finalizeInvoice": func() error { _, err := s.finalize(draft.ID, nil); return err },
		"issueCreditNote": func() error { _, err := s.credit(credit); return err },
	} {
		t.Log(name)
		wantCode(t, number(), domain.CodeSeriesInconsistent)
	}
	s.wantAudit(t, "1 to 4: 1 issued, 0 void, 3 imported, 0 voided elsewhere, 0 skipped")
	made, err := allocateBy(t, s, sqlc.New(testdb.Weaken(t, s.Owner(t), "AllocateInvoices", "e.last_number >= c.next_number", "false")))
	if err != nil || len(made) != 1 || *made[0].Sequence != 2 {
		t.Fatalf("without the look: %v, %v", made, err)
	}
	s.wantAudit(t, "1 to 4: 2 issued, 0 void, 3 imported, 0 voided elsewhere, 0 skipped, twice 2")
	if sequence := s.without(t, draft); sequence != 3 {
		t.Errorf("without the look a draft is given %d, not the 3 that was imported", sequence)
	}
}

// without finalises a draft by a MoveInvoice that does not look at the entries, and returns its number.
func (s *shop) without(t *testing.T, draft *sqlc.Invoice) int64 {
	t.Helper()
	db := testdb.Weaken(t, s.Owner(t), "MoveInvoice", "e.last_number >= c.next_number", "false")
	tx := txn.Tx{Queries: sqlc.New(db), Now: domain.VersionAt(time.Now())}
	n, err := invoicing.NumberBy(t.Context(), tx.Queries, s.caller.TenantID, domain.DocumentInvoice, &s.series, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := invoicing.Move{To: domain.InvoicePending, Number: n, Op: s.operation(t, "finalizeInvoice"), ID: domain.NewID[domain.UUID]()}
	final, err := m.Run(t.Context(), tx, draft)
	if err != nil {
		t.Fatal(err)
	}
	return *final.Sequence
}
