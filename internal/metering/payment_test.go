package metering_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/metering"
	"countersign/internal/testdb"
	"countersign/internal/testdb/pgproxy"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// final is an invoice of 10 minor units, final and unpaid.
func (m *meter) final(t *testing.T) *sqlc.Invoice {
	t.Helper()
	series := testdb.Scan[domain.SeriesID](t, m.DB, "SELECT id FROM invoice_series WHERE tenant_id = $1 AND code = 'INV'", m.caller.TenantID)
	out, err := invoicing.New(m.db).Allocate(context.Background(), m.caller, invoicing.AllocateInvoiceInput{
		SeriesID: series, CustomerID: m.customer, Currency: "EUR", Lines: []domain.InvoiceLineInput{{Description: "Pawn", Quantity: 10, UnitAmountMinor: 1}},
	})
	check(t, err)
	return out.Value
}

// part pays a part of an invoice.
func (m *meter) part(invoice *sqlc.Invoice, amount domain.Cents, reference string, key *string) (*sqlc.Invoice, error) {
	out, err := m.Pay(context.Background(), m.caller, metering.RecordInvoicePaymentInput{InvoiceID: invoice.ID, AmountMinor: amount, Reference: reference, IdempotencyKey: key})
	return out.Value, err
}

// Parts that come at once, all of them at the lock before one takes it: what fits is taken, and what
// does not is told what is due. Two of 6 on 10: one; two of 5: both; five of 3: three.
func TestPartsAtOnce(t *testing.T) {
	t.Parallel()
	one := newMeter(t)
	for _, c := range []struct {
		n, amount, taken int
		status           domain.InvoiceStatus
	}{{2, 6, 1, domain.InvoicePending}, {2, 5, 2, domain.InvoicePaid}, {5, 3, 3, domain.InvoicePending}, {2, 10, 1, domain.InvoicePaid}} {
		t.Run(fmt.Sprintf("%d of %d", c.n, c.amount), func(t *testing.T) {
			m := one.afresh(t)
			invoice := m.final(t)
			gate := m.Gate(t, "LockInvoice")
			go func() {
				gate.Await(t, c.n)
				gate.Open()
			}()
			refused := make([]string, c.n)
			together(c.n, func(i int) {
				_, err := m.part(invoice, domain.Cents(c.amount), fmt.Sprint("part ", i), nil)
				refused[i] = refusal(err)
			})
			m.Before("LockInvoice", nil)
			taken := 0
			for _, told := range refused {
				switch told {
				case "":
					taken++
				case "AMOUNT_MISMATCH input.amountMinor", "ILLEGAL_TRANSITION input.invoiceId":
				default:
					t.Errorf("told %q", told)
				}
			}
			rows, err := invoicing.New(m.db).InvoicesByID(t.Context(), m.caller, []domain.InvoiceID{invoice.ID})
			check(t, err)
			if now := rows[0]; taken != c.taken || int(now.PaidMinor) != taken*c.amount || now.Status != c.status {
				t.Errorf("%d were taken, %d is paid, the invoice is %s", taken, now.PaidMinor, now.Status)
			}
			m.sound(t)
		})
	}
}

// One transfer is recorded once: under its key again it is a replay, under another key, at once too,
// it is refused by the constraint on its reference.
func TestATransferIsRecordedOnce(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	invoice, key := m.final(t), "transfer"
	for range 2 {
		_, err := m.part(invoice, 4, "transfer 17", &key)
		check(t, err)
	}
	_, err := m.part(invoice, 4, "transfer 17", nil)
	wantRefusal(t, err, "REFERENCE_TAKEN input.reference")
	var refused [2]string
	together(2, func(i int) {
		_, err := m.part(invoice, 3, "transfer 18", nil)
		refused[i] = refusal(err)
	})
	if slices.Sort(refused[:]); refused != [2]string{"", "REFERENCE_TAKEN input.reference"} {
		t.Errorf("told %q", refused)
	}
	if _, err := m.part(m.final(t), 10, "transfer 17", nil); err != nil { // the same transfer pays another invoice too
		t.Error(err)
	}
	m.sound(t)
}

// A month that still accrues is paid whole or not at all: a part of it is refused, and it goes on.
func TestAMonthThatAccruesIsPaidWhole(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	m.revoke(t, m.used(t, "1", 10))
	_, err := m.part(m.monthly(t), 9, "part", nil)
	wantRefusal(t, err, "AMOUNT_MISMATCH input.amountMinor")
	m.revoke(t, m.used(t, "1", 7))
	m.wantBooks(t, "USAGE OPEN 17")
	paid := m.pay(t, m.monthly(t))
	if paid.SellerRevision == nil || paid.BuyerRevision == nil {
		t.Error("it is numbered, and its parties are not frozen")
	}
	m.wantBooks(t, "USAGE PAID 17 #1")
	m.sound(t)
}

// A usage invoice of amounts below a minor unit is credited in whole ones: four cents of ten times 0.4.
func TestAUsageInvoiceIsCredited(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	for range 10 {
		m.revoke(t, m.used(t, "0.4", 1))
	}
	paid := m.pay(t, m.monthly(t))
	one := domain.Cents(1)
	for i, in := range []invoicing.IssueCreditNoteInput{{AmountMinor: &one}, {}} {
		in.InvoiceID, in.Reason = paid.ID, "an outage"
		out, err := invoicing.New(m.db).IssueCreditNote(t.Context(), m.caller, in)
		check(t, err)
		if note := out.Value.Note; int(note.TotalMinor) != 1+2*i || note.RefundDueMinor != note.TotalMinor || out.Value.Invoice.Status != domain.InvoicePaid {
			t.Errorf("credited %d, to be given back %d, the invoice is %s", note.TotalMinor, note.RefundDueMinor, out.Value.Invoice.Status)
		}
	}
	m.sound(t)
}

// What is paid or credited in part is not voided; a void names what stands for it, if that is another
// final invoice of the same customer; and of two that are to replace each other at once, one is void.
func TestVoidAndReplace(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	a, b, parted, credited := m.final(t), m.final(t), m.final(t), m.final(t)
	void := func(invoice *sqlc.Invoice, by domain.InvoiceID) error {
		_, err := m.Void(context.Background(), m.caller, metering.VoidInvoiceInput{InvoiceID: invoice.ID, Reason: "wrong", ReplacedBy: &by})
		return err
	}
	_, err := m.part(parted, 1, "part", nil)
	check(t, err)
	one := domain.Cents(1)
	note, err := invoicing.New(m.db).IssueCreditNote(t.Context(), m.caller, invoicing.IssueCreditNoteInput{InvoiceID: credited.ID, AmountMinor: &one, Reason: "x"})
	check(t, err)
	for _, invoice := range []*sqlc.Invoice{parted, credited, note.Value.Note} {
		wantRefusal(t, void(invoice, a.ID), "ILLEGAL_TRANSITION input.invoiceId")
	}
	if err := void(a, a.ID); err == nil || !strings.Contains(err.Error(), "itself") {
		t.Errorf("replaced by itself: %v", err)
	}
	wantRefusal(t, void(a, domain.NewID[domain.InvoiceID]()), "NOT_FOUND input.replacedBy")
	wantRefusal(t, void(a, note.Value.Note.ID), "ILLEGAL_TRANSITION input.replacedBy")
	other := *m
	other.customer = m.customerIn(t, "UTC")
	wantRefusal(t, void(a, other.final(t).ID), "NOT_FOUND input.replacedBy")

	gate := m.Gate(t, "LockInvoice")
	go func() {
		gate.Await(t, 2)
		gate.Open()
	}()
	var refused [2]string
	together(2, func(i int) {
		pair := [][2]*sqlc.Invoice{{a, b}, {b, a}}[i]
		refused[i] = refusal(void(pair[0], pair[1].ID))
	})
	m.Before("LockInvoice", nil)
	if slices.Sort(refused[:]); refused != [2]string{"", "ILLEGAL_TRANSITION input.replacedBy"} {
		t.Errorf("told %q", refused)
	}
	m.sound(t)
}

// The connection is lost before, and after, each message of a payment in part and of a credit note:
// asking again under the same key finds one of each.
func TestLostAtEachMessageOfAPartAndACredit(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	proxy := pgproxy.New(t, m.URL)
	far := m.on(txn.New(m.PoolAt(t, proxy.URL(), 1), txn.Settings{Clock: m.clock.now}))
	one := domain.Cents(1)
	asks := map[string]func(invoice *sqlc.Invoice, key string) error{
		"part": func(invoice *sqlc.Invoice, key string) error {
			_, err := far.part(invoice, 4, "transfer", &key)
			return err
		},
		"credit": func(invoice *sqlc.Invoice, key string) error {
			_, err := invoicing.New(far.db).IssueCreditNote(context.Background(), m.caller,
				invoicing.IssueCreditNoteInput{InvoiceID: invoice.ID, AmountMinor: &one, Reason: "x", IdempotencyKey: &key})
			return err
		},
	}
	for name, ask := range asks {
		check(t, ask(m.final(t), name+" first")) // connected, and its statements prepared
		for _, cut := range []func(*pgproxy.Proxy, pgproxy.Point) *pgproxy.Fault{(*pgproxy.Proxy).CutBefore, (*pgproxy.Proxy).CutAfter} {
			points := 0
			for n, reached := 1, true; reached; n++ {
				invoice := m.final(t)
				key := fmt.Sprint(name, invoice.ID)
				fault := cut(proxy, pgproxy.FrontendMessage(n))
				err := ask(invoice, key)
				fault.Disarm()
				reached = fault.Count() > 0
				switch refusal(err) {
				case "", "OUTCOME_UNKNOWN", "UNAVAILABLE", "BUSY":
				default:
					t.Errorf("%s cut at message %d: told %v", name, n, err)
				}
				check(t, ask(invoice, key))
				points = n
			}
			if points < 10 {
				t.Errorf("%s: only %d messages", name, points)
			}
		}
	}
	if n := m.count(t, "invoices WHERE paid_minor NOT IN (0, 4) OR credited_minor NOT IN (0, 1)"); n != 0 {
		t.Errorf("%d invoices are paid or credited twice", n)
	}
	m.sound(t)
}
