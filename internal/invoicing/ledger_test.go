package invoicing_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/testdb"
	"countersign/sqlc"
)

// issued are rows of numbers that were issued elsewhere.
func issued(numbers ...int64) *[]domain.ImportedNumber {
	rows := make([]domain.ImportedNumber, len(numbers))
	for i := range numbers {
		rows[i].Number = &numbers[i]
	}
	return &rows
}

// skipped is a row of a run of numbers that were given to nothing.
func skipped(first, last int64, reason string) domain.ImportedNumber {
	status := domain.ImportedSkipped
	return domain.ImportedNumber{Number: &first, LastNumber: &last, Status: &status, Reason: &reason}
}

// importing asks for an import of rows into the shop's series, for real.
func (s *shop) importing(rows *[]domain.ImportedNumber) invoicing.ImportNumbersInput {
	return invoicing.ImportNumbersInput{SeriesID: s.series, Numbers: rows, Reason: "from the old system", DryRun: new(false)}
}

// imports imports and expects it to work.
func (s *shop) imports(t *testing.T, in invoicing.ImportNumbersInput) *invoicing.SeriesChange {
	t.Helper()
	out, err := s.ImportNumbers(t.Context(), s.caller, in)
	if err != nil {
		t.Fatalf("import failed: %v", err)
	}
	return out.Value
}

// audit audits the shop's series.
func (s *shop) audit(t *testing.T) *invoicing.Audit {
	t.Helper()
	a, err := s.Audit(t.Context(), s.caller, s.series, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// ledger is what an audit says in short.
func summary(a *invoicing.Audit) string {
	s := fmt.Sprintf("1 to %d: %d issued, %d void, %d imported, %d voided elsewhere, %d skipped", a.LastNumber, a.Issued, a.Void, a.Imported, a.VoidedElsewhere, a.Skipped)
	for _, gap := range a.Gaps {
		s += ", gap " + gap.String()
	}
	for _, number := range a.Duplicates {
		s += fmt.Sprintf(", twice %d", number)
	}
	return s
}

func (s *shop) wantAudit(t *testing.T, want string) {
	t.Helper()
	a := s.audit(t)
	if got := summary(a); got != want {
		t.Errorf("the audit says %q, want %q", got, want)
	}
	if accounted := a.Issued + a.Void + a.Imported + a.VoidedElsewhere + a.Skipped + a.Unexplained; a.DuplicateCount == 0 && accounted != a.LastNumber {
		t.Errorf("of %d numbers %d are accounted for or missed", a.LastNumber, accounted)
	}
}

// take n invoices.
func (s *shop) takeMany(t *testing.T, n int) (last *sqlc.Invoice) {
	t.Helper()
	for range n {
		last = s.take(t, s.input())
	}
	return last
}

// Case 3: the counter is at 12, number 14 is imported, 13 is accounted for by nothing: refused, with the gap
// named, and the counter stays. With 13 explained three allocations take 15, 16 and 17.
func TestCase03AnImportLeavesNoGap(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.takeMany(t, 12)
	_, err := s.ImportNumbers(t.Context(), s.caller, s.importing(issued(14)))
	wantCode(t, err, domain.CodeNumbersUnexplained)
	if gap := (*domain.NumbersUnexplainedError)(nil); !errors.As(err, &gap) || gap.GapCount != 1 || *gap.Gaps[0] != (domain.NumberRange{First: 13, Last: 13}) {
		t.Errorf("the refusal is %+v", err)
	}
	s.wantAudit(t, "1 to 12: 12 issued, 0 void, 0 imported, 0 voided elsewhere, 0 skipped")
	if got := s.take(t, s.input()); *got.Sequence != 13 {
		t.Errorf("after the refusal comes %d", *got.Sequence)
	}
	in := s.importing(issued(16))
	*in.Numbers = append(*in.Numbers, skipped(14, 15, "torn forms"))
	if c := s.imports(t, in); c.NextNumberBefore != 14 || c.NextNumber != 17 || c.ImportedNumbers != 1 || c.SkippedNumbers != 2 {
		t.Errorf("the change is %+v", c.SeriesChange)
	}
	for _, want := range []string{"NEW-00017", "NEW-00018", "NEW-00019"} {
		if got := s.take(t, s.input()); *got.Number != want {
			t.Errorf("allocated %s, want %s", *got.Number, want)
		}
	}
	s.wantAudit(t, "1 to 19: 16 issued, 0 void, 1 imported, 0 voided elsewhere, 2 skipped")
	s.healthy(t)
}

// Case 3's sisters: what is imported must be free, and a number is given one outcome.
func TestAnImportOfTakenNumbersIsRefused(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.takeMany(t, 3)
	s.imports(t, s.importing(&[]domain.ImportedNumber{skipped(4, 9, "torn forms")}))
	for name, rows := range map[string]*[]domain.ImportedNumber{
		"an invoice's": issued(3, 10), "an entry's": issued(7, 10), "an entry's first": issued(4), "an entry's last": issued(9, 10),
		"a run within an entry": {skipped(5, 6, "x")}, "a run around an entry": {skipped(4, 12, "x")}, "a run into an entry": {skipped(9, 12, "x")},
		"a run around invoices": {skipped(1, 12, "x")},
	} {
		for _, dry := range []bool{true, false} {
			in := s.importing(rows)
			in.DryRun = &dry
			if _, err := s.ImportNumbers(t.Context(), s.caller, in); codeOf(err) != domain.CodeNumbersTaken {
				t.Errorf("%s, dry run %v: %v", name, dry, err)
			}
		}
	}
	s.wantAudit(t, "1 to 9: 3 issued, 0 void, 0 imported, 0 voided elsewhere, 6 skipped")
	s.healthy(t)
}

// Case 10: void 5, issue the next: 6. 5 is listed as void with its reason, and nothing is unexplained.
func TestCase10AVoidNumberIsListedWithItsReason(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	fifth := s.takeMany(t, 5)
	s.Exec(t, `UPDATE invoices SET status = 'VOID', voided_at = now(), void_reason = 'sent twice' WHERE id = $1`, fifth.ID)
	s.Exec(t, `INSERT INTO invoice_history (tenant_id, id, invoice_id, position, event, from_status, to_status, operation_id, operation_fingerprint, moved_by, moved_at)
		SELECT tenant_id, gen_random_uuid(), id, 1, 'VOIDED', 'PENDING', 'VOID', gen_random_uuid(), '', 'test', now() FROM invoices WHERE id = $1`, fifth.ID)
	if next := s.take(t, s.input()); *next.Sequence != 6 {
		t.Errorf("after the void comes %d", *next.Sequence)
	}
	status, reason := domain.ImportedVoid, "wrong buyer"
	s.imports(t, s.importing(&[]domain.ImportedNumber{{Number: new(int64(7)), Status: &status, Reason: &reason}}))
	s.wantAudit(t, "1 to 7: 5 issued, 1 void, 0 imported, 1 voided elsewhere, 0 skipped")
	voids := s.audit(t).Voids
	if len(voids) != 2 || voids[0].First != 5 || *voids[0].Reason != "sent twice" || *voids[0].InvoiceID != fifth.ID || *voids[0].Number != "NEW-00005" ||
		voids[1].First != 7 || *voids[1].Reason != "wrong buyer" || voids[1].InvoiceID != nil || *voids[1].Number != "NEW-00007" {
		t.Errorf("void are %+v", voids)
	}
	s.healthy(t)
}

// A dry run says what the import would come to, gaps and all, and writes nothing; it takes no lock either.
func TestADryRunWritesNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.takeMany(t, 2)
	tx, err := s.Owner(t).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT FROM series_counters FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	in := s.importing(issued(3, 4, 5, 8, 9))
	in.DryRun = nil
	c := s.imports(t, in)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !c.DryRun || c.NextNumberBefore != 3 || c.NextNumber != 10 || c.ImportedNumbers != 5 || c.GapCount != 1 || c.Gaps[0].String() != "6 to 7" {
		t.Errorf("the dry run says %+v, %+v", c, c.SeriesChange)
	}
	entries, err := s.EntriesOf(t.Context(), s.caller, c)
	if err != nil || len(entries) != 2 || entries[0].NumberRange != (domain.NumberRange{First: 3, Last: 5}) || entries[1].NumberRange != (domain.NumberRange{First: 8, Last: 9}) {
		t.Errorf("the entries would be %+v, %v", entries, err)
	}
	a, err := s.AuditOf(t.Context(), s.caller, c, nil)
	if err != nil || summary(a) != "1 to 9: 2 issued, 0 void, 5 imported, 0 voided elsewhere, 0 skipped, gap 6 to 7" {
		t.Errorf("the audit would be %s, %v", summary(a), err)
	}
	if n := testdb.Scan[int](t, s.DB, "SELECT (SELECT count(*) FROM series_entries) + (SELECT count(*) FROM series_changes)"); n != 0 {
		t.Errorf("a dry run wrote %d rows", n)
	}
	s.wantAudit(t, "1 to 2: 2 issued, 0 void, 0 imported, 0 voided elsewhere, 0 skipped")
}

// Numbers with one outcome are one row, however many they are; what differs is told apart.
func TestContiguousNumbersAreOneEntry(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	rows := issued(3, 1, 2, 4, 5, 6)
	reference := "old 4"
	(*rows)[3].Reference = &reference
	day := domain.NewDate(2025, 3, 1)
	(*rows)[5].Date = &day
	c := s.imports(t, s.importing(rows))
	entries, err := s.EntriesOf(t.Context(), s.caller, c)
	var got []string
	for _, e := range entries {
		got = append(got, e.NumberRange.String())
	}
	if want := []string{"1 to 3", "4", "5", "6"}; err != nil || !slices.Equal(got, want) || *entries[1].Reference != reference || *entries[3].IssueDate != day {
		t.Errorf("the entries are %v, %v; want %v", got, err, want)
	}
	if got := s.take(t, s.input()); *got.Number != "NEW-00007" {
		t.Errorf("the next is %s", *got.Number)
	}
	s.healthy(t)
}

// After an import nothing is issued before its last day: numbers stay chronological.
func TestAnImportMovesTheLastIssueDate(t *testing.T) {
	t.Parallel()
	now := newClock(time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC))
	s := newShopAt(t, now.now)
	rows := issued(1, 2)
	(*rows)[1].Date = date(t, "2026-06-10")
	s.imports(t, s.importing(rows))
	in := s.input()
	in.IssueDate = date(t, "2026-06-09")
	_, err := s.Allocate(t.Context(), s.caller, in)
	wantCode(t, err, domain.CodePeriodClosed)
	in.IssueDate = date(t, "2026-06-10")
	if got := s.take(t, in); *got.Number != "NEW-00003" {
		t.Errorf("on the last day of the import comes %s", *got.Number)
	}
	s.healthy(t)
}

// A ledger of several periods: each is imported in its turn, what is left is recorded, and the numbers of the
// current year go on after its import, printed as of their own days.
func TestYearsAreImportedInTurn(t *testing.T) {
	t.Parallel()
	now := newClock(time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC))
	s := newShopAt(t, now.now)
	s.use(t, yearly())
	for _, c := range []struct {
		day  string
		last int64
	}{{"2024-11-30", 3}, {"2025-02-01", 2}, {"2026-03-01", 4}} {
		in := s.importing(&[]domain.ImportedNumber{{Number: new(int64(1)), LastNumber: &c.last}})
		in.Period = date(t, c.day)
		s.imports(t, in)
	}
	if got := s.closed(t); got != "2024-01-01: 1 to 3, 2025-01-01: 1 to 2" {
		t.Errorf("closed are %s", got)
	}
	if got := s.take(t, s.input()); *got.Number != "Y-2026-00005" {
		t.Errorf("the next is %s", *got.Number)
	}
	s.healthy(t)
	// A year that was left is closed, and so is one before it that has no number in it.
	in := s.importing(issued(4))
	in.Period = date(t, "2024-01-01")
	_, err := s.ImportNumbers(t.Context(), s.caller, in)
	wantCode(t, err, domain.CodePeriodClosed)
	in.Period, in.Numbers = date(t, "2023-01-01"), issued(1, 3)
	_, err = s.ImportNumbers(t.Context(), s.caller, in)
	wantCode(t, err, domain.CodeNumbersUnexplained)
	in.Numbers = issued(1, 2)
	s.imports(t, in)
	if got := s.closed(t); !strings.HasPrefix(got, "2023-01-01: 1 to 2, 2024") {
		t.Errorf("closed are %s", got)
	}
	periods, err := s.Periods(t.Context(), s.caller, s.series)
	if err != nil || len(periods) != 4 {
		t.Errorf("the periods are %v, %v", periods, err)
	}
	for i, want := range []string{"1 to 2: 0 issued, 0 void, 2 imported", "1 to 3: 0 issued, 0 void, 3 imported", "1 to 2: 0", "1 to 5: 1 issued, 0 void, 4 imported"} {
		a, err := s.Audit(t.Context(), s.caller, s.series, &periods[i], nil)
		if err != nil || !strings.HasPrefix(summary(a), want) || !a.Clean() {
			t.Errorf("%s: %s, %v", periods[i], summary(a), err)
		}
	}
	in.Period = date(t, "2027-01-01")
	_, err = s.ImportNumbers(t.Context(), s.caller, in)
	wantCode(t, err, domain.CodeBadInput)
	// The next year begins at 1 all the same.
	now.set(time.Date(2027, 1, 2, 12, 0, 0, 0, time.UTC))
	if got := s.take(t, s.input()); *got.Number != "Y-2027-00001" {
		t.Errorf("the next year begins with %s", *got.Number)
	}
	s.healthy(t)
}

// A foreign series answers like one that is not there.
func TestAForeignSeriesIsNotFound(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	other, _, err := s.CreateTenant(t.Context(), "other", "Other")
	if err != nil {
		t.Fatal(err)
	}
	stranger := *s
	stranger.caller.TenantID = other.ID
	_, err = s.ImportNumbers(t.Context(), stranger.caller, s.importing(issued(1)))
	wantCode(t, err, domain.CodeNotFound)
	_, err = s.ResyncSeries(t.Context(), stranger.caller, s.resyncing())
	wantCode(t, err, domain.CodeNotFound)
	_, err = s.Audit(t.Context(), stranger.caller, s.series, nil, nil)
	wantCode(t, err, domain.CodeNotFound)
}
