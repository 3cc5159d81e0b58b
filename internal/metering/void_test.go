package metering_test

import (
	"slices"
	"testing"

	"countersign/internal/domain"
	"countersign/internal/metering"
	"countersign/internal/testdb"
)

// Voiding the month's invoice gives back what was on it: each settlement is billed again, in its next
// round, on an invoice of its own, since the month's is void. Nothing is billed twice.
func TestVoidGivesTheSettlementsBack(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	keys := []domain.APIKeyID{m.used(t, "1", 10), m.used(t, "0.6", 1), m.used(t, "1", 5)}
	for _, key := range keys {
		m.revoke(t, key)
	}
	m.wantBooks(t, "USAGE OPEN 16")
	m.void(t, m.monthly(t))
	m.wantBooks(t, "USAGE VOID 16", "RESIDUAL PENDING 10 #1", "RESIDUAL PENDING 5 #2")
	if n := m.count(t, "settlements WHERE round = 2"); n != 3 {
		t.Errorf("%d settlements are in their second round", n)
	}
	m.wantReceipt(t, keys[0], "FOLD: FOLDED", "VOID: PENDING", "FOLD: it cannot be folded", "RECOVERY: BILLED_SEPARATELY")
	m.wantReceipt(t, keys[1], "FOLD: FOLDED", "VOID: PENDING", "FOLD: it cannot be folded", "RECOVERY: SKIPPED_SUB_CENT")
	m.sound(t)
	for _, i := range m.invoices(t) { // and once more, of what was billed apart
		if i.Status == domain.InvoicePending && i.TotalMinor == 5 {
			m.void(t, i)
		}
	}
	m.wantBooks(t, "USAGE VOID 16", "RESIDUAL PENDING 10 #1", "RESIDUAL VOID 5 #2", "RESIDUAL PENDING 5 #3")
	m.revoke(t, m.used(t, "1", 2)) // the month is void: what comes is billed apart
	m.wantBooks(t, "USAGE VOID 16", "RESIDUAL PENDING 10 #1", "RESIDUAL VOID 5 #2", "RESIDUAL PENDING 5 #3", "RESIDUAL PENDING 2 #4")
	m.sound(t)
}

// A paid invoice is not voided, nor is anything twice; a void is replayed by its key.
func TestWhatIsNotVoided(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	m.revoke(t, m.used(t, "1", 10))
	paid := m.pay(t, m.monthly(t))
	_, err := m.Void(t.Context(), m.caller, metering.VoidInvoiceInput{InvoiceID: paid.ID, Reason: "x"})
	wantRefusal(t, err, "ILLEGAL_TRANSITION input.invoiceId")
	m.revoke(t, m.used(t, "1", 7))
	apart, key := m.invoices(t)[1], "void"
	in := metering.VoidInvoiceInput{InvoiceID: apart.ID, Version: &paid.UpdatedAt, Reason: "x", IdempotencyKey: &key}
	_, err = m.Void(t.Context(), m.caller, in)
	wantRefusal(t, err, "STALE_VERSION input.version")
	in.Version = &apart.UpdatedAt
	for _, replayed := range []bool{false, true} {
		out, err := m.Void(t.Context(), m.caller, in)
		check(t, err)
		if out.Replayed != replayed || out.Value.Status != domain.InvoiceVoid {
			t.Errorf("%s, replayed: %t", out.Value.Status, out.Replayed)
		}
	}
	m.wantBooks(t, "USAGE PAID 10 #1", "RESIDUAL VOID 7 #2", "RESIDUAL PENDING 7 #3")
	m.sound(t)
}

// A fold is committed between the void's look at the settlements and its hold of the invoice: what was
// folded is given back too, and none is left on what is void. Proves unplace's comparison.
func TestAFoldCommitsWhileItsInvoiceIsVoided(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	m.revoke(t, m.used(t, "1", 10))
	key, other := m.used(t, "1", 7), m.another(t, 3)
	m.before(t, "LockInvoice", func() { other.revoke(t, key) })
	m.void(t, m.monthly(t))
	m.wantBooks(t, "USAGE VOID 17", "RESIDUAL PENDING 10 #1", "RESIDUAL PENDING 7 #2")
	m.sound(t)
}

// A payment is of exactly what is due when it takes hold of the invoice: a fold that commits before
// it makes another amount due, and the payment is refused, not taken for less.
func TestAPaymentIsOfWhatIsDueUnderTheLock(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	m.revoke(t, m.used(t, "1", 10))
	key, other, due := m.used(t, "1", 7), m.another(t, 3), m.monthly(t)
	m.before(t, "LockInvoice", func() { other.revoke(t, key) })
	_, err := m.Pay(t.Context(), m.caller, payment(due))
	wantRefusal(t, err, "AMOUNT_MISMATCH input.amountMinor")
	m.wantBooks(t, "USAGE OPEN 17")
	paid := m.pay(t, m.monthly(t))
	if paid.Status != domain.InvoicePaid || paid.Number == nil || paid.PaidAt == nil || *paid.PaymentReference != "transfer" {
		t.Errorf("paid: %+v", paid)
	}
	_, err = m.Pay(t.Context(), m.caller, payment(due))
	wantRefusal(t, err, "ILLEGAL_TRANSITION input.invoiceId")
	m.sound(t)
}

// Two payments of one invoice at once: one is taken. And a fold that races the payment of an open
// invoice is in it or billed apart, whichever takes the invoice first.
func TestPaymentsAndFoldsAtOnce(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	m.revoke(t, m.used(t, "1", 10))
	due, keys := m.monthly(t), []domain.APIKeyID{m.used(t, "1", 7), m.used(t, "1", 7)}
	var refused [4]string
	gate := m.Gate(t, "LockInvoice")
	go func() {
		gate.Await(t, 2)
		gate.Open()
	}()
	together(4, func(i int) {
		if i < 2 {
			m.revoke(t, keys[i])
			return
		}
		_, err := m.Pay(t.Context(), m.caller, payment(due))
		refused[i] = refusal(err)
	})
	books := m.books(t)
	slices.Sort(refused[2:])
	switch refused[2] {
	case "": // one was taken, before any fold
		m.wantBooks(t, "USAGE PAID 10 #1", "RESIDUAL PENDING 7 #2", "RESIDUAL PENDING 7 #3")
	case "AMOUNT_MISMATCH input.amountMinor":
		m.wantBooks(t, "USAGE OPEN 24")
	default:
		t.Errorf("payments were refused with %q, the books are %q", refused[2:], books)
	}
	testdb.Eventually(t, func() bool { return len(m.list(t, unfinished)) == 0 })
	m.sound(t)
}
