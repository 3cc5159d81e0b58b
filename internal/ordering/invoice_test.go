package ordering_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/metering"
	"countersign/internal/payment"
	"countersign/internal/testdb"
)

// invoice makes an invoice of 100.00 EUR.
func (s *store) invoice(t *testing.T) domain.InvoiceID {
	t.Helper()
	series := testdb.Scan[domain.SeriesID](t, s.DB, "SELECT id FROM invoice_series WHERE tenant_id = $1 AND document = 'INVOICE'", s.caller.TenantID)
	out, err := invoicing.New(s.db).Allocate(t.Context(), s.caller, invoicing.AllocateInvoiceInput{
		SeriesID: series, CustomerID: s.customer, Currency: "EUR", Lines: []domain.InvoiceLineInput{{Description: "Board", Quantity: 1, UnitAmountMinor: 10000}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Value.ID
}

// accruing is the invoice of a month that still accrues, with 100.00 EUR on it.
func (s *store) accruing(t *testing.T) domain.InvoiceID {
	t.Helper()
	usage := metering.New(s.db)
	in := metering.CreateAPIKeyInput{CustomerID: s.customer, Name: "key"}
	err := in.UnitPrice.UnmarshalGQL("2500")
	if err != nil {
		t.Fatal(err)
	}
	key, err := usage.CreateKey(t.Context(), s.caller, in)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := usage.RecordUsage(t.Context(), s.caller, metering.RecordUsageInput{Events: []metering.UsageEventInput{
		{ID: key.Value.ID.String(), APIKeyID: key.Value.ID, Quantity: 4, OccurredAt: time.Now()},
	}}); err != nil {
		t.Fatal(err)
	}
	out, err := usage.Revoke(t.Context(), s.caller, metering.RevokeAPIKeyInput{APIKeyID: key.Value.ID})
	if err != nil {
		t.Fatal(err)
	}
	return *out.Value.Settlement.InvoiceID
}

// tellOf takes a webhook about an invoice in.
func (s *store) tellOf(t *testing.T, event string, id domain.InvoiceID, fact domain.Fact) {
	t.Helper()
	if err := s.Receive(t.Context(), payment.Event{ID: event, Reference: id.String(), Fact: fact}); err != nil {
		t.Errorf("%s was not taken in: %v", event, err)
	}
}

// result is what the inbox says of an event; "waits" if it was not applied.
func (s *store) result(t *testing.T, event string) string {
	t.Helper()
	return testdb.Scan[string](t, s.DB, "SELECT coalesce(result, 'waits') FROM ops.payment_events WHERE event_id = $1", event)
}

// invoiceRow is all of an invoice, with its moves.
func (s *store) invoiceRow(t *testing.T, id domain.InvoiceID) string {
	t.Helper()
	return testdb.Scan[string](t, s.DB, `SELECT format('%s %s %s %s', status, coalesce(number, '-'), coalesce(payment_reference, '-'),
		(SELECT string_agg(h.event, ' ' ORDER BY h.position) FROM invoice_history h WHERE h.invoice_id = i.id)) FROM invoices i WHERE id = $1`, id)
}

func paid(payment string, amount domain.Cents) domain.Fact {
	return domain.Fact{Kind: domain.FactPaid, PaymentID: payment, Amount: domain.Money{AmountMinor: amount, Currency: "EUR"}}
}

// A provider's payment of exactly what is due pays the invoice, once: a replay changes nothing, nor
// does the same payment told in another event. What else is told of a paid invoice is for a person.
func TestWebhookPaysAnInvoice(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.WithInvoices(metering.ApplyFact)
	id := s.invoice(t)
	s.tellOf(t, "evt", id, paid("p1", 10000))
	const want = "PAID INV-00001 p1 PAID"
	if got := s.invoiceRow(t, id); got != want || s.result(t, "evt") != "PAID" {
		t.Fatalf("the invoice is %s, want %s; the event %s", got, want, s.result(t, "evt"))
	}
	version := testdb.Scan[time.Time](t, s.DB, "SELECT updated_at FROM invoices WHERE id = $1", id)
	s.tellOf(t, "evt", id, paid("p1", 10000))
	s.tellOf(t, "again", id, paid("p1", 10000))
	s.tellOf(t, "second", id, paid("p2", 10000))
	if got := s.invoiceRow(t, id); got != want || !testdb.Scan[time.Time](t, s.DB, "SELECT updated_at FROM invoices WHERE id = $1", id).Equal(version) {
		t.Errorf("told again the invoice is %s, want %s and the version as it was", got, want)
	}
	if got := s.result(t, "again"); got != "UNCHANGED" {
		t.Errorf("the payment told in another event is %s", got)
	}
	if got := s.result(t, "second"); !strings.HasPrefix(got, "FLAGGED: an invoice that is PAID cannot become PAID") {
		t.Errorf("a second payment is %s", got)
	}
}

// A payment of a month that still accrues makes its invoice final: it takes its number with it.
func TestWebhookPaysAnAccruingInvoice(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.WithInvoices(metering.ApplyFact)
	id := s.accruing(t)
	if got := s.invoiceRow(t, id); got != "OPEN - - " {
		t.Fatalf("before it is paid the invoice is %s", got)
	}
	s.tellOf(t, "evt", id, paid("p1", 10000))
	if got := s.invoiceRow(t, id); got != "PAID INV-00001 p1 PAID" {
		t.Errorf("the invoice is %s", got)
	}
	if late := s.accruing(t); late == id {
		t.Error("what was used after the payment is on the paid invoice")
	}
}

// What does not pay an invoice exactly is kept with the reason, and leaves the invoice as it was.
func TestWebhookThatPaysNoInvoice(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.WithInvoices(metering.ApplyFact)
	yen := paid("p", 10000)
	yen.Amount.Currency = "JPY"
	failed, refunded := paid("p", 10000), paid("p", 10000)
	failed.Kind, refunded.Kind, refunded.RefundID = domain.FactFailed, domain.FactRefunded, "r"
	for name, id := range map[string]domain.InvoiceID{"final": s.invoice(t), "accruing": s.accruing(t)} {
		before := s.invoiceRow(t, id)
		for what, c := range map[string]struct {
			fact domain.Fact
			want string
		}{
			"less": {paid("p", 9999), "FLAGGED: 10000 minor units of EUR are due"}, "more": {paid("p", 10001), "FLAGGED: 10000 minor units of EUR are due"},
			"yen": {yen, "FLAGGED: 10000 minor units of EUR are due"}, "failed": {failed, "FLAGGED: payment.failed of an invoice"}, "refunded": {refunded, "FLAGGED: payment.refunded of an invoice"},
		} {
			s.tellOf(t, name+what, id, c.fact)
			if got := s.result(t, name+what); !strings.HasPrefix(got, c.want) {
				t.Errorf("%s, %s: the event is %s, want %s", name, what, got, c.want)
			}
			if got := s.invoiceRow(t, id); got != before {
				t.Errorf("%s, %s: the invoice is %s, was %s", name, what, got, before)
			}
		}
	}
	s.tellOf(t, "stray", domain.NewID[domain.InvoiceID](), paid("p", 10000))
	if got := s.result(t, "stray"); got != "waits" {
		t.Errorf("a payment of nobody's invoice is %s", got)
	}
}

// Deliveries of several events about one accruing invoice at once, on two servers: it is paid by one
// of them and numbered once; the others are kept for a person. The invoice's lock, status and version
// each see to that, so this proves none of them alone.
func TestWebhooksOfAnInvoiceAtOnce(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	other := s.secondServer(t)
	for _, server := range []*store{s, other} {
		server.WithInvoices(metering.ApplyFact)
	}
	id := s.accruing(t)
	gate := s.Gate(t, "LockInvoice")
	wait := meanwhile(func() {
		together(16, func(i int) {
			[]*store{s, other}[i%2].tellOf(t, fmt.Sprintf("evt%d", i), id, paid(fmt.Sprintf("p%d", i), 10000))
		})
	})
	gate.Await(t, 8)
	gate.Open()
	wait()
	if got := s.invoiceRow(t, id); !strings.HasPrefix(got, "PAID INV-00001 p") || !strings.HasSuffix(got, " PAID") {
		t.Errorf("the invoice is %s", got)
	}
	if got := testdb.Scan[string](t, s.DB, "SELECT string_agg(left(result, 7), ' ' ORDER BY result DESC) FROM ops.payment_events"); got != "PAID"+strings.Repeat(" FLAGGED", 15) {
		t.Errorf("the events are %s", got)
	}
	if next := testdb.Scan[int64](t, s.DB, "SELECT next_number FROM series_counters c JOIN invoice_series s ON s.id = c.series_id WHERE s.document = 'INVOICE'"); next != 2 {
		t.Errorf("the next number is %d", next)
	}
}

// A server that knows no invoices keeps their webhooks; one that does applies them when it sweeps.
func TestSweepPaysAnInvoice(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	id := s.invoice(t)
	s.tellOf(t, "evt", id, paid("p1", 10000))
	if got := s.result(t, "evt"); got != "waits" {
		t.Fatalf("the event is %s", got)
	}
	s.WithInvoices(metering.ApplyFact)
	if done := s.reconcile(t); done.Events != 1 || done.Waiting != 0 {
		t.Errorf("reconciled: %+v", done)
	}
	if got := s.invoiceRow(t, id); got != "PAID INV-00001 p1 PAID" || s.result(t, "evt") != "PAID" {
		t.Errorf("the invoice is %s, the event %s", got, s.result(t, "evt"))
	}
}
