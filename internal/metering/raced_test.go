package metering_test

import (
	"context"
	"slices"
	"testing"

	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/testdb"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// What a person does to an invoice while a fold has read it and not yet written.
var moves = []struct {
	name  string
	move  func(t *testing.T, other *meter, invoice *sqlc.Invoice)
	after domain.InvoiceStatus
	books []string // with ten units folded before, and seven units in the fold
}{
	{"paid", func(t *testing.T, other *meter, invoice *sqlc.Invoice) { other.pay(t, invoice) },
		domain.InvoicePaid, []string{"USAGE PAID 10 #1", "RESIDUAL PENDING 7 #2"}},
	{"waived by hand", func(t *testing.T, other *meter, invoice *sqlc.Invoice) { other.waive(t, invoice) },
		domain.InvoiceWaived, []string{"USAGE WAIVED 10", "RESIDUAL PENDING 7 #1"}},
	{"finalised", func(t *testing.T, other *meter, invoice *sqlc.Invoice) { other.finalise(t, invoice) },
		domain.InvoicePending, []string{"USAGE PENDING 10 #1", "RESIDUAL PENDING 7 #2"}},
}

// finalise makes an invoice final and numbered, as closing its month does.
func (m *meter) finalise(t *testing.T, invoice *sqlc.Invoice) {
	t.Helper()
	_, err := txn.Run(context.Background(), m.db, txn.Write[*sqlc.Invoice]{
		Apply: func(ctx context.Context, tx txn.Tx) (*sqlc.Invoice, error) {
			n, err := invoicing.NumberBy(ctx, tx.Queries, invoice.TenantID, domain.DocumentInvoice, nil, nil)
			if err != nil {
				return nil, err
			}
			op, err := domain.NewOperation(invoice.TenantID, "a test", "finalise", "", nil, invoice.ID)
			if err != nil {
				return nil, err
			}
			return invoicing.Move{To: domain.InvoicePending, Number: n, Op: op, ID: domain.NewID[domain.UUID]()}.Run(ctx, tx, invoice)
		},
		Find: func(context.Context, *sqlc.Queries) (f txn.Found[*sqlc.Invoice], err error) { return f, errNothing },
	})
	check(t, err)
}

// Case 33 and its sisters: the invoice is paid, waived by hand or finalised between the fold's read
// and its write. It stays as it is, to the last column, and the residual is billed apart, once,
// under a number of its own; the receipt tells what was seen, and why it was refused.
func TestCase33MovedBetweenTheFoldsReadAndItsWrite(t *testing.T) {
	t.Parallel()
	one := newMeter(t)
	for _, c := range moves {
		t.Run(c.name, func(t *testing.T) {
			m := one.afresh(t)
			m.revoke(t, m.used(t, "1", 10))
			key, other := m.used(t, "1", 7), m.another(t, 3)
			var moved *sqlc.Invoice
			m.before(t, "FoldIntoInvoice", func() {
				c.move(t, other, m.monthly(t))
				moved = m.monthly(t)
			})
			out := m.revoke(t, key)
			if s := out.Settlement; s.Outcome != domain.SettlementBilledSeparately || *s.InvoiceID == moved.ID {
				t.Errorf("the settlement is %s on %v", s.Outcome, s.InvoiceID)
			}
			if now := m.monthly(t); now.Status != c.after || !now.UpdatedAt.Equal(moved.UpdatedAt.Time) {
				t.Errorf("the invoice was %s at %v, and is %s at %v: it was overwritten", moved.Status, moved.UpdatedAt, now.Status, now.UpdatedAt)
			}
			m.wantBooks(t, c.books...)
			m.wantReceipt(t, key, "FOLD: the invoice was moved since it was read", "FOLD: it cannot be folded", "RECOVERY: BILLED_SEPARATELY")
			m.settle(t)
			m.wantBooks(t, c.books...)
			m.sound(t)
		})
	}
}

// The terminal read: the invoice was moved before the fold began. It is not tried to fold at all.
func TestTheTerminalRead(t *testing.T) {
	t.Parallel()
	one := newMeter(t)
	for _, c := range moves {
		t.Run(c.name, func(t *testing.T) {
			m := one.afresh(t)
			m.revoke(t, m.used(t, "1", 10))
			key := m.used(t, "1", 7)
			c.move(t, m, m.monthly(t))
			sent := m.Sent()
			m.revoke(t, key)
			if slices.Contains(sent(), "FoldIntoInvoice") {
				t.Error("a fold into what is final was tried")
			}
			m.wantBooks(t, c.books...)
			m.wantReceipt(t, key, "FOLD: it cannot be folded", "RECOVERY: BILLED_SEPARATELY")
			m.sound(t)
		})
	}
}

// The invoice is voided between the fold's read and its write: the void gives back what was on it,
// and that, like the residual, is billed apart, each once.
func TestVoidedBetweenTheFoldsReadAndItsWrite(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	m.revoke(t, m.used(t, "1", 10))
	key, other := m.used(t, "1", 7), m.another(t, 3)
	voided := make(chan struct{})
	m.before(t, "FoldIntoInvoice", func() {
		go func() { // it waits for the fold, once it has voided
			defer close(voided)
			other.void(t, other.monthly(t))
		}()
		testdb.Eventually(t, func() bool { return m.monthly(t).Status == domain.InvoiceVoid })
	})
	m.revoke(t, key)
	<-voided
	if first := m.monthly(t); first.Number != nil || first.TotalMinor != 10 {
		t.Errorf("the voided month has the number %v and the total %d", first.Number, first.TotalMinor)
	}
	m.settle(t)
	if got := m.count(t, "invoices WHERE kind = 'RESIDUAL' AND status = 'PENDING' AND total_minor IN (7, 10)"); got != 2 || len(m.invoices(t)) != 3 {
		t.Errorf("the books are %q", m.books(t))
	}
	m.sound(t)
}

// An invoice that somebody pays on every attempt, and takes back, wears the five attempts out:
// recovery holds it and folds, and no value is lost.
func TestAThirdPartyOnEveryAttempt(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	m.revoke(t, m.used(t, "1", 10))
	key, owner, held := m.used(t, "1", 7), m.Owner(t), false
	m.Before("LockPeriod", func(context.Context) { held = true })
	m.Before("FoldIntoInvoice", func(ctx context.Context) {
		if held {
			return // recovery: nobody else comes in any more
		}
		if _, err := owner.Exec(ctx, "UPDATE invoices SET updated_at = updated_at + interval '1 microsecond'"); err != nil {
			t.Error(err)
		}
	})
	m.revoke(t, key)
	moved := "FOLD: the invoice was moved since it was read"
	m.wantReceipt(t, key, moved, moved, moved, moved, moved, "RECOVERY: FOLDED")
	m.wantBooks(t, "USAGE OPEN 17")
	m.sound(t)
}

// In recovery nobody else comes in: whoever wants to move the invoice waits until it has committed.
// Proves the lock of LockInvoice in recovery, without which the guard would refuse there too.
func TestRecoveryHoldsTheInvoice(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	m.revoke(t, m.used(t, "1", 10))
	key, other := m.used(t, "1", 7), m.another(t, 3)
	folds, paid := 0, make(chan struct{})
	m.Before("FoldIntoInvoice", func(ctx context.Context) {
		if folds++; folds <= 5 {
			m.Exec(t, "UPDATE invoices SET updated_at = updated_at + interval '1 microsecond'")
			return
		}
		due := other.monthly(t)
		go func() {
			defer close(paid)
			_, err := other.Pay(context.Background(), other.caller, payment(due))
			wantRefusal(t, err, "AMOUNT_MISMATCH input.amountMinor") // of what was due before the fold
		}()
		m.AwaitLockWaits(t, 1)
	})
	m.revoke(t, key)
	<-paid
	if folds != 6 {
		t.Errorf("%d folds, want five and the one of recovery", folds)
	}
	m.wantBooks(t, "USAGE OPEN 17")
	m.sound(t)
}

// A residual whose exact amount is less than one minor unit is skipped, and the skip is a row with
// its receipt: case 32's last part.
func TestCase32AResidualBelowOneMinorUnitIsSkipped(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	m.revoke(t, m.used(t, "1", 10))
	m.pay(t, m.monthly(t))
	small, whole := m.used(t, "0.6", 1), m.used(t, "0.5", 2)
	if s := m.revoke(t, small).Settlement; s.Outcome != domain.SettlementSkipped || s.InvoiceID != nil || s.Amount.Text('f') != "0.6" {
		t.Errorf("0.6 of a minor unit is %s on %v", s.Outcome, s.InvoiceID)
	}
	m.wantReceipt(t, small, "FOLD: it cannot be folded", "RECOVERY: SKIPPED_SUB_CENT")
	if s := m.revoke(t, whole).Settlement; s.Outcome != domain.SettlementBilledSeparately {
		t.Errorf("a whole minor unit is %s", s.Outcome)
	}
	m.wantBooks(t, "USAGE PAID 10 #1", "RESIDUAL PENDING 1 #2")
	m.sound(t)
}
