package invoicing_test

import (
	"strings"
	"testing"
	"time"

	"countersign/internal/domain"
	"countersign/internal/invoicing"
)

// notes is a series of credit notes, in UTC, that starts anew with India's fiscal year.
func (s *shop) notes(t *testing.T, code string) *domain.SeriesID {
	t.Helper()
	out, err := s.CreateSeries(t.Context(), s.caller, invoicing.CreateInvoiceSeriesInput{
		Code: code, Document: ptr(domain.DocumentCreditNote), Preset: ptr(domain.PresetIndia), TimeZone: ptr("UTC"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return &out.Value.ID
}

// A credit note is never dated before its invoice, by default or by request: where the invoice's day is
// still tomorrow to the series of the credit notes, the note takes that day, and no other one that is not
// there yet. What the counter says stands: its days never step back.
func TestACreditNoteDoesNotPrecedeItsInvoice(t *testing.T) {
	t.Parallel()
	c := newClock(time.Date(2027, 3, 31, 20, 0, 0, 0, time.UTC)) // 1 April in India, where a fiscal year begins
	s := newShopAt(t, c.now)
	west := s.take(t, s.input()) // 31 March
	s.use(t, invoicing.CreateInvoiceSeriesInput{Code: "IN", Preset: ptr(domain.PresetIndia)})
	india := s.take(t, s.input())
	if got := india.IssueDate.String(); got != "2027-04-01" {
		t.Fatalf("India's invoice is issued on %s", got)
	}
	one, first, asked, fresh := domain.Cents(1), s.notes(t, "A"), s.notes(t, "B"), s.notes(t, "C")
	for _, step := range []struct {
		name    string
		series  *domain.SeriesID
		invoice domain.InvoiceID
		date    string
		code    domain.Code
		want    string // the note's number and day, or what the refusal says
	}{
		{"years before", fresh, west.ID, "2020-01-05", domain.CodeBadInput, "the issue date 2020-01-05 is before that of the invoice, 2027-03-31"},
		{"today, before the invoice", fresh, india.ID, "2027-03-31", domain.CodeBadInput, "before that of the invoice, 2027-04-01"},
		{"after tomorrow", fresh, india.ID, "2027-04-02", domain.CodeBadInput, "2027-04-02 is in the future: it is 2027-03-31"},
		{"tomorrow, for an invoice of today", fresh, west.ID, "2027-04-01", domain.CodeBadInput, "2027-04-01 is in the future: it is 2027-03-31"},
		{"an invoice of today", first, west.ID, "", "", "A/2026-27/0001 2027-03-31"},
		{"an invoice of tomorrow", first, india.ID, "", "", "A/2027-28/0001 2027-04-01"},
		{"the counter's day for an invoice of today", first, west.ID, "", "", "A/2027-28/0002 2027-04-01"},
		{"in the period that the counter has left", first, west.ID, "2027-03-31", domain.CodePeriodClosed, "lies in a period that is closed"},
		{"the invoice's day, asked for", asked, india.ID, "2027-04-01", "", "B/2027-28/0001 2027-04-01"},
		{"the default series", nil, india.ID, "", "", "CN-00001 2027-04-01"},
		{"before the counter's last day", nil, west.ID, "2027-03-31", domain.CodePeriodClosed, "already issued a document on 2027-04-01"},
	} {
		in := invoicing.IssueCreditNoteInput{InvoiceID: step.invoice, AmountMinor: &one, SeriesID: step.series}
		if step.date != "" {
			in.IssueDate = date(t, step.date)
		}
		issued, err := s.credit(in)
		if err != nil {
			if got := said(err); codeOf(err) != step.code || !strings.HasPrefix(got, "input.issueDate: ") || !strings.Contains(got, step.want) {
				t.Errorf("%s: %s, want %s %q", step.name, got, step.code, step.want)
			}
			continue
		}
		if got := *issued.Note.Number + " " + issued.Note.IssueDate.String(); got != step.want || step.code != "" {
			t.Errorf("%s: %s, want %s %s", step.name, got, step.code, step.want)
		}
		if !issued.Note.CreatedAt.Equal(c.now()) {
			t.Errorf("%s: made at %s", step.name, issued.Note.CreatedAt)
		}
	}
	c.set(time.Date(2027, 4, 5, 12, 0, 0, 0, time.UTC))
	for date, in := range map[string]invoicing.IssueCreditNoteInput{
		"2027-04-02": {InvoiceID: west.ID, AmountMinor: &one, SeriesID: fresh, IssueDate: date(t, "2027-04-02")},
		"2027-04-05": {InvoiceID: india.ID, AmountMinor: &one, SeriesID: first},
	} {
		if issued, err := s.credit(in); err != nil || issued.Note.IssueDate.String() != date {
			t.Errorf("days later: %+v (%v), want %s", issued.Note, err, date)
		}
	}
	s.healthy(t)
}
