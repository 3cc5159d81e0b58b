package metering_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"countersign/internal/domain"
	"countersign/sqlc"
)

// keysUsed are n keys of the customer, each used i+1 times at 0.3 minor units.
func (m *meter) keysUsed(t *testing.T, n int) (keys []domain.APIKeyID, total domain.Cents) {
	t.Helper()
	units := int64(0)
	for i := range n {
		keys = append(keys, m.used(t, "0.3", int64(i+1)))
		units += int64(i + 1)
	}
	exact, err := decimal(t, "0.3").Times(units)
	check(t, err)
	total, err = exact.Cents()
	check(t, err)
	return keys, total
}

// Two and sixteen keys of one customer are revoked at once, each on a server of its own, and every
// one has read the same invoice before any of them writes: no increment is lost, whatever the
// attempts; each has its line, and the total is the exact sum rounded once.
func TestKeysRevokedAtOnceLoseNoIncrement(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 16} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			m := newMeter(t)
			m.revoke(t, m.used(t, "1", 0+1))
			keys, total := m.keysUsed(t, n)
			gate := m.Gate(t, "FoldIntoInvoice")
			go func() {
				gate.Await(t, n)
				gate.Open()
			}()
			together(n, func(i int) { m.revoke(t, keys[i]) })
			m.wantBooks(t, fmt.Sprintf("USAGE OPEN %d", total+1))
			if lines := m.count(t, "invoice_lines"); lines != n+1 {
				t.Errorf("%d lines, want %d", lines, n+1)
			}
			refused := 0
			for _, key := range keys {
				refused += len(m.receipt(t, key)) - 1
			}
			if refused < n-1 {
				t.Errorf("%d attempts were refused, want at least all but one of the first %d", refused, n)
			}
			m.sound(t)
		})
	}
}

// Case 34: six keys of one customer are revoked at once, and there is no invoice yet: all six have
// seen that before one inserts it. One monthly invoice, six lines, one sum.
func TestCase34SixKeysAtOnceAndNoInvoiceYet(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	keys, total := m.keysUsed(t, 6)
	gate := m.Gate(t, "InsertUsageInvoice")
	go func() {
		gate.Await(t, 6)
		gate.Open()
	}()
	together(6, func(i int) { m.revoke(t, keys[i]) })
	m.wantBooks(t, fmt.Sprintf("USAGE OPEN %d", total))
	if lines := m.count(t, "invoice_lines"); lines != 6 {
		t.Errorf("%d lines, want 6", lines)
	}
	lost := 0
	for _, key := range keys {
		if slices.Contains(m.receipt(t, key), "FOLD: another fold made the month's invoice") {
			lost++
		}
	}
	if lost != 5 {
		t.Errorf("%d receipts tell of a lost insert, want 5", lost)
	}
	m.sound(t)
}

// Proves invoices_monthly_key: without it, two first folds make two invoices for the month.
func TestWithoutTheMonthlyIndexThereAreTwoInvoices(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	keys, _ := m.keysUsed(t, 2)
	m.Exec(t, "DROP INDEX invoices_monthly_key")
	gate := m.Gate(t, "InsertUsageInvoice")
	go func() {
		gate.Await(t, 2)
		gate.Open()
	}()
	together(2, func(i int) { m.revoke(t, keys[i]) })
	if n := m.count(t, "invoices WHERE kind = 'USAGE'"); n != 2 {
		t.Errorf("without the index there are %d monthly invoices, expected 2", n)
	}
}

// The insert is lost, and lost again, until the attempts are used up: recovery holds the month alone,
// so its insert is the last. (The index refuses what others insert and take back.)
func TestALostInsertOnEveryAttempt(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	key := m.used(t, "1", 7)
	inserts := 0
	m.Exec(t, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		RAISE unique_violation USING CONSTRAINT = 'invoices_monthly_key'; END $$`)
	m.Exec(t, "CREATE TRIGGER refuse BEFORE INSERT ON invoices FOR EACH ROW EXECUTE FUNCTION refuse()")
	m.before(t, "LockPeriod", func() { m.Exec(t, "DROP TRIGGER refuse ON invoices") })
	sent := m.Sent()
	m.revoke(t, key)
	for _, query := range sent() {
		if query == "InsertUsageInvoice" {
			inserts++
		}
	}
	if receipt := strings.Join(m.receipt(t, key), "; "); inserts != 6 || !strings.HasSuffix(receipt, "RECOVERY: FOLDED") {
		t.Errorf("%d inserts, and the receipt says %q", inserts, receipt)
	}
	m.wantBooks(t, "USAGE OPEN 7")
	m.sound(t)
}

// Recovery is alone with the month: a first fold that begins meanwhile waits, and folds into the
// invoice that recovery has made. Proves LockPeriod against SharePeriod.
func TestRecoveryIsAloneWithTheMonth(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	first, second, other := m.used(t, "1", 7), m.used(t, "1", 5), m.another(t, 3)
	pending := m.leavePending(t, first)
	m.Exec(t, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		RAISE unique_violation USING CONSTRAINT = 'invoices_monthly_key'; END $$`)
	m.Exec(t, "CREATE TRIGGER refuse BEFORE INSERT ON invoices FOR EACH ROW EXECUTE FUNCTION refuse()")
	done := make(chan struct{})
	m.before(t, "LockSettlement", func() { // in recovery, with the month held
		m.Exec(t, "DROP TRIGGER refuse ON invoices")
		go func() {
			defer close(done)
			other.revoke(t, second)
		}()
		m.AwaitLockWaits(t, 1)
	})
	m.settle(t)
	<-done
	m.wantReceipt(t, second, "FOLD: FOLDED")
	m.wantBooks(t, "USAGE OPEN 12")
	if s := m.settlement(t, pending); s.Outcome != domain.SettlementFolded {
		t.Errorf("the first is %s", s.Outcome)
	}
	m.sound(t)
}

func (m *meter) settlement(t *testing.T, id domain.SettlementID) *sqlc.Settlement {
	t.Helper()
	rows, err := m.SettlementsByID(t.Context(), m.caller, []domain.SettlementID{id})
	check(t, err)
	return rows[0]
}

// Revocations that lock keys and months of two customers in opposite order do not stop each other.
func TestKeysOfManyCustomersRevokedAtOnce(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	a, b := *m, *m
	b.customer = m.customerIn(t, "Asia/Kolkata")
	var keys []domain.APIKeyID
	for range 6 {
		keys = append(keys, a.used(t, "1", 2), b.used(t, "1", 3))
	}
	together(len(keys), func(i int) { m.revoke(t, keys[i]) })
	a.wantBooks(t, "USAGE OPEN 12")
	b.wantBooks(t, "USAGE OPEN 18")
	m.sound(t)
}
