package invoicing_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/testdb"
	"countersign/sqlc"
)

func ptr[T any](v T) *T { return &v }

// A preset fills in what is left out; what is asked for overrides it, within its law.
func TestPresetsFillIn(t *testing.T) {
	t.Parallel()
	s := newShopAt(t, newClock(time.Date(2026, 3, 31, 20, 0, 0, 0, time.UTC)).now) // 1 April in India
	series := s.use(t, invoicing.CreateInvoiceSeriesInput{Code: "IN", Preset: ptr(domain.PresetIndia)})
	if series.Reset != domain.ResetFiscalYearly || series.FiscalYearStart != 4 || series.MaxLength != 16 || series.TimeZone != "Asia/Kolkata" ||
		series.AllowedCharacters != domain.CharactersAlphanumericDashSlash || *series.Preset != domain.PresetIndia || series.MaxNumber() != 99_999 {
		t.Errorf("India's series is %+v, to %d", series, series.MaxNumber())
	}
	if got := *s.take(t, s.input()).Number; got != "IN/2026-27/0001" {
		t.Errorf("India's first number is %s", got)
	}
	series = s.use(t, invoicing.CreateInvoiceSeriesInput{
		Code: "IM", Preset: ptr(domain.PresetIndia), Reset: ptr(domain.ResetMonthly), MaxLength: ptr(int32(15)), TimeZone: ptr("UTC"),
		Format: ptr(domain.NumberFormat("{CODE}/{YYYY}{MM}/{N:4}")),
	})
	if got := *s.take(t, s.input()).Number; got != "IM/202603/0001" || series.MaxLength != 15 {
		t.Errorf("the first number is %s, of at most %d characters", got, series.MaxLength)
	}
	for _, preset := range domain.PresetRules {
		s.use(t, invoicing.CreateInvoiceSeriesInput{Code: "P" + string(preset.Preset[:2]), Preset: &preset.Preset})
		s.take(t, s.input())
	}
	// Another reset than the preset's has its own format.
	s.use(t, invoicing.CreateInvoiceSeriesInput{Code: "DM", Preset: ptr(domain.PresetGermany), Reset: ptr(domain.ResetMonthly)})
	if got := *s.take(t, s.input()).Number; got != "DM-2026-03-00001" {
		t.Errorf("Germany's first number of a month is %s", got)
	}
	_, err := s.CreateSeries(t.Context(), s.caller, invoicing.CreateInvoiceSeriesInput{Code: "IX", Preset: ptr(domain.PresetIndia), MaxLength: ptr(int32(17))})
	var violated *domain.PresetViolatedError
	if !errors.As(err, &violated) || violated.Source != "CGST Rules 2017, rule 46 (b)" {
		t.Errorf("17 characters in India: %v", err)
	}
	s.healthy(t)
}

// A series whose numbers could be printed like another's is refused when it is made, and the answer
// names the other; the same for two that are made at once.
func TestASeriesThatPrintsLikeAnotherIsRefused(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	plain := domain.NumberFormat("{CODE}{N}")
	s.newSeries(t, "A", plain)
	_, err := s.CreateSeries(t.Context(), s.caller, invoicing.CreateInvoiceSeriesInput{Code: "A1", Format: &plain})
	wantCode(t, err, domain.CodeInvalidFormat)
	if err == nil || !strings.Contains(err.Error(), "the series A, whose format is {CODE}{N}") {
		t.Errorf("A and A1: %v", err)
	}
	_, err = s.CreateSeries(t.Context(), s.caller, invoicing.CreateInvoiceSeriesInput{Code: "A", Format: &plain})
	wantCode(t, err, domain.CodeCodeTaken)
	s.newSeries(t, "A-1", "{CODE}-{N:5}")
}

// Proves series_places_pkey, the guard of InsertSeries: of twelve series made at once, each of
// which could print like any other, one is made; of twelve that could not, all are.
func TestSeriesMadeAtOnceSeeEachOther(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	gate := s.Gate(t, "InsertSeries") // all have compared before any inserts
	var made atomic.Int32
	done := make(chan struct{})
	go func() {
		defer close(done)
		together(24, func(i int) {
			in := invoicing.CreateInvoiceSeriesInput{Code: fmt.Sprintf("OK%d", i)}
			if i%2 == 0 {
				in.Code, in.Format = strings.Repeat("1", i/2+1), ptr(domain.NumberFormat("X{CODE}{N}"))
			}
			_, err := s.CreateSeries(t.Context(), s.caller, in)
			switch {
			case err == nil && i%2 == 0:
				made.Add(1)
			case i%2 == 0:
				wantCode(t, err, domain.CodeInvalidFormat)
			default:
				wantCode(t, err, "")
			}
		})
	}()
	gate.Await(t, 12)
	gate.Open()
	<-done
	if made.Load() != 1 {
		t.Errorf("%d series print like each other", made.Load())
	}
	places := testdb.Scan[[]int32](t, s.DB, "SELECT array_agg(place ORDER BY place) FROM series_places WHERE tenant_id = $1", s.caller.TenantID)
	for i, place := range places {
		if int(place) != i+1 {
			t.Errorf("the places are %v", places)
			break
		}
	}
}

// A series that has used up its legal numbers says so, with the number, its length and what to do;
// nothing illegal is printed, and the next period has numbers again. Proves the guard on
// max_number in AllocateInvoices: without it the statement would go on.
func TestAnExhaustedSeries(t *testing.T) {
	t.Parallel()
	now := newClock(time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC))
	s := newShopAt(t, now.now)
	in := yearly()
	in.Format, in.MaxLength, in.Capacity = ptr(domain.NumberFormat("Y-{YYYY}-{N}")), ptr(int32(8)), ptr(int64(9))
	s.use(t, in)
	together(12, func(i int) {
		_, err := s.Allocate(t.Context(), s.caller, s.input())
		if err == nil {
			return
		}
		wantCode(t, err, domain.CodeSeriesExhausted)
		want := "at number 10 the number would have 9 characters, and at most 8 are allowed; make another series, or wait for the period that begins on 2027-01-01"
		if refusal := (*domain.Refusal)(nil); !strings.HasSuffix(err.Error(), want) || !errors.As(err, &refusal) || strings.Join(refusal.Path, ".") != "input.seriesId" {
			t.Errorf("got %v at %v", err, refusal.Path)
		}
	})
	s.wantOneTo(t, 9)
	s.healthy(t)
	now.set(now.now().AddDate(1, 0, 0))
	if got := *s.take(t, s.input()).Number; got != "Y-2027-1" {
		t.Errorf("the next year's first number is %s", got)
	}
	s.healthy(t)

	s.Exec(t, "UPDATE series_counters SET next_number = 10, issue_date_ends = 'infinity' WHERE series_id = $1", s.series)
	if rows, err := allocateWithout(t, s, s.Owner(t), ""); err != nil || len(rows) != 0 {
		t.Errorf("with the guard: %v, %v", rows, err)
	}
	s.Exec(t, "ALTER TABLE series_counters DROP CONSTRAINT series_counters_within_max_number")
	rows, err := allocateWithout(t, s, s.Owner(t), "AND c.next_number <= c.max_number - cardinality($2::uuid[]) + 1")
	if err != nil || len(rows) != 1 || len(*rows[0].Number) != 9 {
		t.Errorf("without the guard: %v, %v; expected a number of 9 characters", rows, err)
	}
}

// What is numbered beside allocation is told of an exhausted series in terms of its own argument, given or not.
func TestAnExhaustedSeriesOfItsOwnArgument(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	draft, invoice := s.draft(t).ID, s.take(t, s.input()).ID
	s.Exec(t, "UPDATE series_counters SET next_number = max_number + 1")
	notes := testdb.Scan[domain.SeriesID](t, s.DB, "SELECT id FROM invoice_series WHERE code = 'CN'")
	for _, named := range []bool{true, false} {
		finalise, credit := invoicing.FinalizeInvoiceInput{InvoiceID: draft}, invoicing.IssueCreditNoteInput{InvoiceID: invoice}
		if named {
			finalise.SeriesID, credit.SeriesID = &s.series, &notes
		}
		_, err := s.Finalize(t.Context(), s.caller, finalise)
		_, other := s.credit(credit)
		for _, err := range []error{err, other} {
			if codeOf(err) != domain.CodeSeriesExhausted || !strings.HasPrefix(said(err), "input.seriesId: ") {
				t.Errorf("series named %t: %s", named, said(err))
			}
		}
	}
}

// A document is numbered by a series of its kind alone, on the day that is asked for.
func TestNumberBy(t *testing.T) {
	t.Parallel()
	s := newShopAt(t, newClock(time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)).now)
	yearly := s.use(t, invoicing.CreateInvoiceSeriesInput{Code: "NI", Reset: ptr(domain.ResetYearly)})
	notes := s.use(t, invoicing.CreateInvoiceSeriesInput{Code: "NC", Document: ptr(domain.DocumentCreditNote), Reset: ptr(domain.ResetYearly)})
	finalize := func(series domain.SeriesID, day *domain.Date) (*sqlc.Invoice, error) {
		out, err := s.Finalize(t.Context(), s.caller, invoicing.FinalizeInvoiceInput{InvoiceID: s.draft(t).ID, SeriesID: &series, IssueDate: day})
		return out.Value, err
	}
	var last *sqlc.Invoice
	for i, day := range []*domain.Date{date(t, "2026-06-01"), date(t, "2026-06-10"), nil, nil} {
		n, err := finalize(yearly.ID, day)
		if want := fmt.Sprintf("NI-2026-%05d", i+1); err != nil || *n.Number != want || *n.SeriesID != yearly.ID || *n.PeriodStart != domain.NewDate(2026, 1, 1) || *n.Sequence != int64(i+1) {
			t.Errorf("got %+v, %v, want %s", n, err, want)
		}
		if want := domain.NewDate(2026, 6, 15); day == nil && *n.IssueDate != want || day != nil && *n.IssueDate != *day {
			t.Errorf("issued on %s", n.IssueDate)
		}
		last = n
	}
	for i := range 2 {
		out, err := s.credit(invoicing.IssueCreditNoteInput{InvoiceID: last.ID, AmountMinor: ptr(domain.Cents(1)), Reason: "sent back", SeriesID: &notes.ID})
		if want := fmt.Sprintf("NC-2026-%05d", i+1); err != nil || *out.Note.Number != want || *out.Note.SeriesID != notes.ID {
			t.Errorf("got %+v, %v, want %s", out.Note, err, want)
		}
	}
	_, err := finalize(yearly.ID, date(t, "2026-06-01"))
	wantCode(t, err, domain.CodePeriodClosed)
	_, err = finalize(notes.ID, nil)
	wantCode(t, err, domain.CodeSeriesKindMismatch)
	_, err = finalize(domain.NewID[domain.SeriesID](), nil)
	wantCode(t, err, domain.CodeNotFound)
	_, err = s.credit(invoicing.IssueCreditNoteInput{InvoiceID: last.ID, Reason: "sent back", SeriesID: &yearly.ID})
	wantCode(t, err, domain.CodeSeriesKindMismatch)
	s.series = notes.ID
	_, err = s.Allocate(t.Context(), s.caller, s.input())
	wantCode(t, err, domain.CodeSeriesKindMismatch)

	for document, code := range map[domain.SeriesDocument]string{domain.DocumentInvoice: "INV", domain.DocumentCreditNote: "CN"} {
		series, err := invoicing.DefaultSeries(t.Context(), sqlc.New(s.Pool), s.caller.TenantID, document)
		if err != nil || series.Code != code || series.Document != document {
			t.Errorf("the default series of %s is %+v, %v", document, series, err)
		}
	}
}

// An input without any of the fields that came later has the fingerprint that it had: a client
// that asks again after an upgrade is answered with its series.
func TestFingerprintOfASeriesStays(t *testing.T) {
	t.Parallel()
	op := func(in any) domain.Fingerprint {
		op, err := domain.NewOperation(domain.TenantID{}, "", "", "", nil, in)
		if err != nil {
			t.Fatal(err)
		}
		return op.Fingerprint
	}
	before := struct {
		Code                 string  `json:"code"`
		Format               *string `json:"format"`
		TimeZone             *string `json:"timeZone"`
		FiscalYearStartMonth *int32  `json:"fiscalYearStartMonth"`
	}{Code: "A", TimeZone: ptr("Europe/Berlin")}
	if !op(before).Equal(op(invoicing.CreateInvoiceSeriesInput{Code: "A", TimeZone: ptr("Europe/Berlin")})) {
		t.Error("the canonical form of a series has changed")
	}
}

// A series at work on the database, against the plainest model of it: for each year the last
// number it gave. Clocks jump, two servers disagree, days are asked for.
func TestSeriesAgainstModel(t *testing.T) {
	t.Parallel()
	now := newClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	s := newShopAt(t, now.now)
	slow := s.secondServer(t, func() time.Time { return now.now().Add(-36 * time.Hour) })
	serial := 0
	rapid.Check(t, func(rt *rapid.T) {
		if serial++; serial > 15 {
			return // a database is slow, and the domain has the long run
		}
		reset := rapid.SampledFrom([]domain.SeriesReset{domain.ResetNever, domain.ResetYearly, domain.ResetMonthly, domain.ResetFiscalYearly}).Draw(rt, "reset")
		series := s.use(t, invoicing.CreateInvoiceSeriesInput{Code: fmt.Sprintf("M%d-", serial), Reset: &reset, FiscalYearStartMonth: ptr(int32(4))})
		slow.series = s.series
		day := time.Date(2026, 12, 25, 12, 0, 0, 0, time.UTC)
		last, latest, printed := map[domain.Date]int{}, domain.Date{}, []string{}
		for range 8 {
			day = day.AddDate(0, 0, rapid.SampledFrom([]int{-2, 0, 1, 6, 40, 400}).Draw(rt, "days"))
			now.set(day)
			server := rapid.SampledFrom([]*shop{s, slow}).Draw(rt, "server")
			today := domain.DateOf(server.db.Clock(), time.UTC)
			in := server.input()
			if rapid.IntRange(0, 3).Draw(rt, "ask") == 0 {
				in.IssueDate = ptr(domain.Date{Time: today.AddDate(0, 0, rapid.SampledFrom([]int{-40, -1, 0, 1}).Draw(rt, "days asked"))})
			}
			out, err := server.Allocate(t.Context(), s.caller, in)
			want := today
			switch {
			case in.IssueDate != nil:
				want = *in.IssueDate
			case latest.After(today.Time):
				want = latest
			}
			var code domain.Code
			switch {
			case want.Before(latest.Time):
				code = domain.CodePeriodClosed
			case want.After(today.Time) && want.After(latest.Time):
				code = domain.CodeBadInput
			}
			if codeOf(err) != code {
				rt.Fatalf("reset %s, asked %v on %s after %s: %v, want %q", reset, in.IssueDate, today, latest, err, code)
			}
			if err != nil {
				continue
			}
			period := series.Rule().PeriodStart(want)
			last[period]++
			latest = want
			text := series.Rule().On(want).Print(int64(last[period]))
			if *out.Value.Number != text || *out.Value.PeriodStart != period {
				rt.Fatalf("got %s in the period of %s, want %s", *out.Value.Number, out.Value.PeriodStart, text)
			}
			printed = append(printed, text)
		}
		if got := s.numbers(t); !slices.Equal(got, printed) {
			rt.Fatalf("the series has %v, want %v", got, printed)
		}
		if left := strings.Count(s.closed(t), ":"); left != max(len(last)-1, 0) {
			rt.Fatalf("%d periods are closed, of %d with numbers", left, len(last))
		}
	})
	s.healthy(t)
}
