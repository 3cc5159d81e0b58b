package invoicing_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/testdb"
	"countersign/internal/testdb/pgproxy"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// draft makes a draft of one line.
func (s *shop) draft(t *testing.T) *sqlc.Invoice {
	t.Helper()
	out, err := s.CreateDraft(t.Context(), s.caller, invoicing.CreateDraftInvoiceInput{CustomerID: s.customer, Currency: "EUR", Lines: s.input().Lines})
	if err != nil {
		t.Fatal(err)
	}
	return out.Value
}

func (s *shop) finalize(id domain.InvoiceID, key *string) (txn.Outcome[*sqlc.Invoice], error) {
	return s.Finalize(context.Background(), s.caller, invoicing.FinalizeInvoiceInput{InvoiceID: id, SeriesID: &s.series, IdempotencyKey: key})
}

func (s *shop) drop(id domain.InvoiceID) error {
	_, err := s.DeleteDraft(context.Background(), s.caller, invoicing.DeleteDraftInvoiceInput{InvoiceID: id})
	return err
}

func (s *shop) edit(invoice *sqlc.Invoice) error {
	lines := []domain.InvoiceLineInput{{Description: "Clock", Quantity: 1, UnitAmountMinor: 2900}}
	_, err := s.UpdateDraft(context.Background(), s.caller, invoicing.UpdateDraftInvoiceInput{InvoiceID: invoice.ID, Version: invoice.UpdatedAt, Lines: lines})
	return err
}

func (s *shop) get(t *testing.T, id domain.InvoiceID) *sqlc.Invoice {
	t.Helper()
	rows, err := s.InvoicesByID(t.Context(), s.caller, []domain.InvoiceID{id})
	if err != nil {
		t.Fatal(err)
	}
	return rows[0]
}

// next is the number that the shop's series would give.
func (s *shop) next(t *testing.T) int64 {
	return testdb.Scan[int64](t, s.DB, "SELECT next_number FROM series_counters WHERE series_id = $1", s.series)
}

// Case 8: the same draft finalised at once, twice under one key and twice under others: one number,
// the counter moved by one, and everybody is answered the same invoice. All four have come to the
// lock before one takes it; without the lock of LockInvoice they would all decide on a draft.
func TestCase08ADraftFinalisedAtOnceHasOneNumber(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	draft, key := s.draft(t), "finalize"
	gate := s.Gate(t, "LockInvoice")
	go func() {
		gate.Await(t, 4)
		gate.Open()
	}()
	var outs [4]txn.Outcome[*sqlc.Invoice]
	together(4, func(i int) {
		keys := []*string{&key, &key, nil, nil}
		out, err := s.finalize(draft.ID, keys[i])
		if err != nil {
			t.Errorf("call %d: %v", i, err)
		}
		outs[i] = out
	})
	did := 0
	for _, out := range outs {
		if out.Value == nil || *out.Value.Number != "NEW-00001" || out.Value.Status != domain.InvoicePending {
			t.Errorf("answered %+v", out.Value)
		}
		if !out.Replayed {
			did++
		}
	}
	if did != 1 || s.next(t) != 2 {
		t.Errorf("%d did the work, the next number is %d", did, s.next(t))
	}
	if n := testdb.Scan[int](t, s.DB, "SELECT count(*) FROM invoice_history WHERE event = 'FINALISED'"); n != 1 {
		t.Errorf("finalised %d times in the history", n)
	}
	s.healthy(t)
}

// Case 9: D1 and D2 are drafts, D2 is finalised, D1 deleted: D2 is number 1, and the next one is 2.
func TestCase09ADeletedDraftLeavesNoHole(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	d1, d2 := s.draft(t), s.draft(t)
	if _, err := s.finalize(d2.ID, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.drop(d1.ID); err != nil {
		t.Fatal(err)
	}
	if got := s.get(t, d2.ID); *got.Sequence != 1 {
		t.Errorf("D2 is number %d", *got.Sequence)
	}
	s.take(t, s.input())
	s.wantOneTo(t, 2)
	wantCode(t, s.drop(d2.ID), domain.CodeIllegalTransition)
	if err := s.drop(d1.ID); err != nil { // again, under another key
		t.Error(err)
	}
	_, err := s.finalize(d1.ID, nil)
	wantCode(t, err, domain.CodeIllegalTransition)
	s.healthy(t)
}

// Finalised while it is deleted, edited or finalised under another series: whoever takes hold of the
// draft first decides, and the other is told where it stands.
func TestADraftMovedWhileItIsFinalised(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		other func(s *shop, draft *sqlc.Invoice) error
		// what the other is told if it comes second, and the finalisation if that comes second
		late, told domain.Code
	}{
		{"deleted", func(s *shop, d *sqlc.Invoice) error { return s.drop(d.ID) }, domain.CodeIllegalTransition, domain.CodeIllegalTransition},
		{"edited", func(s *shop, d *sqlc.Invoice) error { return s.edit(d) }, domain.CodeIllegalTransition, ""},
	} {
		for _, first := range []string{"finalised first", c.name + " first"} {
			t.Run(c.name+", "+first, func(t *testing.T) {
				t.Parallel()
				s := newShop(t)
				draft := s.draft(t)
				finalize := func() error { _, err := s.finalize(draft.ID, nil); return err }
				other := func() error { return c.other(s, draft) }
				one, two := finalize, other
				if first != "finalised first" {
					one, two = other, finalize
				}
				gate := s.Gate(t, "commit") // the first holds the draft, moved, and has not committed
				var err1, err2 error
				done := make(chan struct{})
				go func() { defer close(done); err1 = one() }()
				gate.Await(t, 1)
				waits := make(chan struct{})
				go func() { defer close(waits); err2 = two() }()
				s.AwaitLockWaits(t, 1)
				gate.Open()
				<-done
				<-waits
				if err1 != nil {
					t.Errorf("the first: %v", err1)
				}
				numbered, want := s.get(t, draft.ID), c.late
				if first != "finalised first" {
					want = c.told
				}
				wantCode(t, err2, want)
				if n := s.next(t); (numbered.Number != nil) != (n == 2) || n > 2 {
					t.Errorf("the draft is %s, and the next number is %d", numbered.Status, n)
				}
				if c.name == "edited" && first != "finalised first" && numbered.TotalMinor != 2900 {
					t.Errorf("finalised with %d, want what it was edited to", numbered.TotalMinor)
				}
				s.healthy(t)
			})
		}
	}
}

// Two edits of one version: one is taken, and the other told that its version is stale. Lines that an
// edit has replaced stay in the database, and count in nothing.
func TestEditsOfOneVersion(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	draft := s.draft(t)
	var codes [2]string
	together(2, func(i int) { codes[i] = string(codeOf(s.edit(draft))) })
	slices.Sort(codes[:])
	if codes != [2]string{"", "STALE_VERSION"} {
		t.Errorf("the edits are told %q", codes)
	}
	now := s.get(t, draft.ID)
	lines, err := s.LinesOf(t.Context(), s.caller, []*sqlc.Invoice{now})
	if err != nil || len(lines[0]) != 1 || lines[0][0].Description != "Clock" || now.TotalMinor != 2900 {
		t.Errorf("%v (%v)", lines, err)
	}
	if n := testdb.Scan[int](t, s.DB, "SELECT count(*) FROM invoice_lines"); n != 2 {
		t.Errorf("%d lines are kept, want the old one too", n)
	}
	s.healthy(t)
}

// The connection is lost before, and after, each message of a finalisation: whatever its caller is
// told, asking again under the same key finds one number, and the counter has moved by one.
func TestLostAtEachMessageOfAFinalisation(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	proxy := pgproxy.New(t, s.URL)
	far := *s
	far.db = txn.New(s.PoolAt(t, proxy.URL(), 1), txn.Settings{})
	far.Service = invoicing.New(far.db)
	if _, err := far.finalize(s.draft(t).ID, nil); err != nil { // connected, and its statements prepared
		t.Fatal(err)
	}
	finals := int64(1)
	for _, cut := range []func(*pgproxy.Proxy, pgproxy.Point) *pgproxy.Fault{(*pgproxy.Proxy).CutBefore, (*pgproxy.Proxy).CutAfter} {
		points := 0
		for n, reached := 1, true; reached; n++ {
			draft, key := s.draft(t), "finalize "+s.draft(t).ID.String()
			fault := cut(proxy, pgproxy.FrontendMessage(n))
			_, err := far.finalize(draft.ID, &key)
			fault.Disarm()
			reached = fault.Count() > 0
			switch codeOf(err) {
			case "", domain.CodeOutcomeUnknown, domain.CodeUnavailable, domain.CodeBusy:
			default:
				t.Errorf("cut at message %d: told %v", n, err)
			}
			again, err := far.finalize(draft.ID, &key)
			if finals++; err != nil || *again.Value.Sequence != finals || s.next(t) != finals+1 {
				t.Fatalf("cut at message %d: asking again: %+v (%v), the next number is %d", n, again.Value, err, s.next(t))
			}
			points = n
		}
		if points < 10 {
			t.Errorf("only %d messages", points)
		}
	}
	s.healthy(t)
}

// Finalising asks for a series and a day: one of another document, a foreign one, and another than it
// was finalised with are refused; what is final already is no draft.
func TestWhatIsNotFinalised(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	draft := s.draft(t)
	credit := testdb.Scan[domain.SeriesID](t, s.DB, "SELECT id FROM invoice_series WHERE code = 'CN'")
	other, nowhere := s.newSeries(t, "B", "{CODE}{N}"), domain.NewID[domain.SeriesID]()
	for series, want := range map[*domain.SeriesID]domain.Code{&credit: domain.CodeSeriesKindMismatch, &nowhere: domain.CodeNotFound} {
		_, err := s.Finalize(t.Context(), s.caller, invoicing.FinalizeInvoiceInput{InvoiceID: draft.ID, SeriesID: series})
		wantCode(t, err, want)
	}
	old := domain.VersionAt(draft.CreatedAt.Add(-1))
	_, err := s.Finalize(t.Context(), s.caller, invoicing.FinalizeInvoiceInput{InvoiceID: draft.ID, Version: &old})
	wantCode(t, err, domain.CodeStaleVersion)
	if _, err := s.finalize(draft.ID, nil); err != nil {
		t.Fatal(err)
	}
	has := fmt.Sprintf("input.invoiceId: the invoice is final already: it has the number NEW-00001 of the series %s, issued on %s", s.series, s.get(t, draft.ID).IssueDate)
	for _, in := range []invoicing.FinalizeInvoiceInput{{SeriesID: &other}, {IssueDate: date(t, "2020-01-05")}} {
		in.InvoiceID = draft.ID
		_, err = s.Finalize(t.Context(), s.caller, in)
		if wantCode(t, err, domain.CodeIllegalTransition); said(err) != has {
			t.Errorf("finalised otherwise: %s, want %s", said(err), has)
		}
	}
	out, err := s.Finalize(t.Context(), s.caller, invoicing.FinalizeInvoiceInput{InvoiceID: draft.ID, Version: &old}) // it was decided before
	if err != nil || !out.Replayed {
		t.Errorf("%+v (%v)", out, err)
	}
	s.healthy(t)
}
