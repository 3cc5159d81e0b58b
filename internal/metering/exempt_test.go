package metering_test

import (
	"context"
	"testing"

	"countersign/internal/domain"
	"countersign/internal/metering"
	"countersign/internal/testdb"
)

// The moments of a fold at which an exemption may be granted or removed: at the query that is about
// to be sent. The commit is the fold's own; after it comes the look.
var moments = []struct {
	name string
	arm  func(t *testing.T, m *meter, act func())
}{
	{"before the read", func(t *testing.T, m *meter, act func()) { m.before(t, "SharePeriod", act) }},
	{"between read and write", func(t *testing.T, m *meter, act func()) { m.before(t, "PlaceSettlement", act) }},
	{"between write and commit", func(t *testing.T, m *meter, act func()) {
		m.before(t, "PlaceSettlement", func() { m.before(t, "commit", act) })
	}},
	{"between commit and look", func(t *testing.T, m *meter, act func()) { m.before(t, "ListLookedAtInvoices", act) }},
	{"between the look's read and its write", func(t *testing.T, m *meter, act func()) {
		m.before(t, "ListLookedAtInvoices", func() {
			m.before(t, "commit", act) // the look's, if it writes or not
		})
	}},
	{"after the look", nil},
}

// flipOnly grants or removes without the look that follows on the commit, which is done by whoever
// granted, who is slow, or dies. What the fold's own look must see, it sees by itself.
func (m *meter) flipOnly(t *testing.T, exempt bool) {
	t.Helper()
	if exempt {
		m.Exec(t, `INSERT INTO billing_exemptions (tenant_id, id, customer_id, reason, operation_id, operation_fingerprint, granted_by, granted_at)
			VALUES ($1, $2, $3, 'a school', $2, '', 'test', $4)`, m.caller.TenantID, domain.NewID[domain.ExemptionID](), m.customer, m.clock.now())
		return
	}
	m.Exec(t, `UPDATE billing_exemptions SET ended_by = 'test', ended_at = $2, end_operation_id = id, end_fingerprint = '' WHERE customer_id = $1 AND ended_at IS NULL`,
		m.customer, m.clock.now())
}

// Case 35: an exemption is granted, or removed, at each moment of a fold, with and without another
// fold in between. The end matches the exemption: nothing is due if the customer is exempt; if not,
// all of it is, with the usage that was added meanwhile. The granting server's own look is part of
// it; the test after this one is without.
func TestCase35TheExemptionFlipsDuringAFold(t *testing.T) {
	t.Parallel()
	one := newMeter(t)
	for _, at := range moments {
		for _, granted := range []bool{true, false} {
			for _, another := range []bool{false, true} {
				name := at.name + map[bool]string{true: ", granted", false: ", removed"}[granted] + map[bool]string{true: ", with another fold", false: ""}[another]
				t.Run(name, func(t *testing.T) {
					m := one.afresh(t)
					if !granted {
						m.exempt(t)
					}
					m.revoke(t, m.used(t, "1", 10)) // so that there is an invoice to fold into
					key, second, other, total := m.used(t, "1", 7), m.used(t, "1", 5), m.another(t, 5), domain.Cents(17)
					flipped := make(chan struct{})
					act := func() {
						go func() {
							defer close(flipped)
							if granted {
								other.exempt(t)
							} else {
								other.charge(t)
							}
							if another {
								other.revoke(t, second)
							}
						}()
						// The flip itself is committed now; its look, and the other fold, may have to wait for us.
						testdb.Eventually(t, func() bool {
							return m.count(t, "billing_exemptions WHERE ended_at IS NULL AND customer_id = $1", m.customer) == map[bool]int{true: 1}[granted]
						})
					}
					if another {
						total = 22
					}
					if at.arm != nil {
						at.arm(t, m, act)
					}
					m.revoke(t, key)
					if at.arm == nil {
						act()
					}
					<-flipped
					invoice := m.monthly(t)
					if want := map[bool]domain.InvoiceStatus{true: domain.InvoiceWaived, false: domain.InvoiceOpen}[granted]; invoice.Status != want || invoice.TotalMinor != total {
						t.Errorf("the invoice is %s %d, want %s %d", invoice.Status, invoice.TotalMinor, want, total)
					}
					if due := invoice.AmountDue().AmountMinor; granted && due != 0 || !granted && due != total {
						t.Errorf("%d are due of %d", due, total)
					}
					m.sound(t)
				})
			}
		}
	}
}

// Proves the look after the fold: who grants or removes dies before looking, and the fold has read
// what was so before; its own look alone makes the end match. What comes after that look, the sweep
// heals.
func TestTheFoldsOwnLook(t *testing.T) {
	t.Parallel()
	one := newMeter(t)
	for _, at := range moments {
		for _, granted := range []bool{true, false} {
			for _, first := range []bool{false, true} {
				name := at.name + map[bool]string{true: ", granted", false: ", removed"}[granted] + map[bool]string{true: ", no invoice yet", false: ""}[first]
				t.Run(name, func(t *testing.T) {
					m := one.afresh(t)
					if !granted {
						m.exempt(t)
					}
					total := domain.Cents(7)
					if !first {
						m.revoke(t, m.used(t, "1", 10))
						total = 17
					}
					key := m.used(t, "1", 7)
					if at.arm != nil {
						at.arm(t, m, func() { m.flipOnly(t, granted) })
					}
					m.revoke(t, key)
					if at.arm == nil {
						m.flipOnly(t, granted)
					}
					if at.arm == nil || at.name == "between the look's read and its write" {
						if r := m.settle(t); r.Looked == 0 {
							t.Error("the sweep saw nothing to look at")
						}
					}
					invoice := m.monthly(t)
					if want := map[bool]domain.InvoiceStatus{true: domain.InvoiceWaived, false: domain.InvoiceOpen}[granted]; invoice.Status != want || invoice.TotalMinor != total {
						t.Errorf("the invoice is %s %d, want %s %d", invoice.Status, invoice.TotalMinor, want, total)
					}
					m.sound(t)
				})
			}
		}
	}
}

// Proves the guard of the look's own write: the invoice is paid between the look's read and its
// write. It stays paid.
func TestTheLookDoesNotOverwrite(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	m.revoke(t, m.used(t, "1", 10))
	other := m.another(t, 3)
	m.before(t, "MoveInvoice", func() { other.pay(t, m.monthly(t)) })
	m.exempt(t)
	m.wantBooks(t, "USAGE PAID 10 #1")
	m.sound(t)
}

// Proves the version in MoveInvoice: between the look's read of an invoice that an exemption waived
// and its write, another look reinstates the invoice, and a person waives it by hand. It is WAIVED
// again, as the first look had read it; but not the same, and the person's decision stands.
func TestTheLookKnowsAnotherWaive(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	m.revoke(t, m.used(t, "1", 10))
	m.exempt(t)
	other := m.another(t, 3)
	m.before(t, "MoveInvoice", func() {
		other.settle(t)
		other.waive(t, m.monthly(t))
	})
	m.charge(t)
	if now := m.monthly(t); now.Status != domain.InvoiceWaived || *now.WaivedBy != domain.WaivedByHand {
		t.Errorf("the invoice is %s", now.Status)
	}
	m.sound(t)
}

// Proves the guard of VerifyWaive: another fold comes between the look's read and its write. The
// waive is not verified on a version that nobody has looked at; the next look does it.
func TestAWaiveIsVerifiedOnTheVersionThatWasLookedAt(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	m.exempt(t)
	key, other := m.used(t, "1", 10), m.another(t, 3)
	m.before(t, "VerifyWaive", func() { m.Exec(t, "UPDATE invoices SET updated_at = updated_at + interval '1 microsecond'") })
	sent := m.Sent()
	other.events = m.events
	m.revoke(t, key)
	verifies := 0
	for _, query := range sent() {
		if query == "VerifyWaive" {
			verifies++
		}
	}
	if verifies != 2 {
		t.Errorf("%d attempts to verify, want a refused one and another", verifies)
	}
	m.sound(t)
}

// A waive by hand is a person's decision: no exemption's end takes it back, and no look touches it.
func TestAWaiveByHandIsNeverReinstated(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	m.revoke(t, m.used(t, "1", 10))
	m.exempt(t)
	m.charge(t) // waived by exemption, and reinstated
	m.waive(t, m.monthly(t))
	before := m.monthly(t)
	m.exempt(t)
	m.charge(t)
	m.settle(t)
	if now := m.monthly(t); now.Status != domain.InvoiceWaived || !now.UpdatedAt.Equal(before.UpdatedAt.Time) || *now.WaivedBy != domain.WaivedByHand {
		t.Errorf("the waive by hand was touched: %s by %s", now.Status, *now.WaivedBy)
	}
	m.clock.set(inJuly)
	m.close(t, june)
	m.wantBooks(t, "USAGE WAIVED 10 #1")
	m.sound(t)
}

// An exemption that ends while another one begins: the waive names the one that stands.
func TestTheEvidenceIsTheExemptionThatStands(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	m.exempt(t)
	key := m.used(t, "1", 10)
	m.before(t, "ListLookedAtInvoices", func() {
		m.flipOnly(t, false)
		m.flipOnly(t, true)
	})
	m.revoke(t, key)
	standing := testdb.Scan[domain.UUID](t, m.DB, "SELECT id FROM billing_exemptions WHERE ended_at IS NULL")
	if got := domain.UUID(*m.monthly(t).ExemptionID); got != standing {
		t.Errorf("the waive names %v, want %v", got, standing)
	}
	m.sound(t)
}

// A residual of an exempt customer is waived with a number of its own, and reinstated to PENDING
// while its month is open; a verified waive of a closed month stands.
func TestWaivedResiduals(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	m.revoke(t, m.used(t, "1", 10))
	m.pay(t, m.monthly(t))
	m.exempt(t)
	m.revoke(t, m.used(t, "1", 7))
	m.wantBooks(t, "USAGE PAID 10 #1", "RESIDUAL WAIVED 7 #2")
	m.charge(t)
	m.wantBooks(t, "USAGE PAID 10 #1", "RESIDUAL PENDING 7 #2")
	m.exempt(t)
	m.revoke(t, m.used(t, "1", 5))
	m.clock.set(inJuly)
	m.close(t, june)
	m.charge(t)
	m.settle(t)
	m.wantBooks(t, "USAGE PAID 10 #1", "RESIDUAL PENDING 7 #2", "RESIDUAL WAIVED 5 #3")
	m.sound(t)
}

// One exemption at a time, and none to remove where there is none; each mutation is replayed by its
// key.
func TestExemptionsAreGrantedAndRemovedOnce(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	key, end := "grant", "end"
	grant := metering.GrantBillingExemptionInput{CustomerID: m.customer, Reason: "a school", IdempotencyKey: &key}
	first, err := m.GrantExemption(t.Context(), m.caller, grant)
	check(t, err)
	again, err := m.GrantExemption(t.Context(), m.caller, grant)
	check(t, err)
	if !again.Replayed || again.Value.ID != first.Value.ID {
		t.Error("the grant was not replayed")
	}
	grant.IdempotencyKey = nil
	_, err = m.GrantExemption(t.Context(), m.caller, grant)
	wantRefusal(t, err, "ALREADY_EXEMPT input.customerId")
	remove := metering.RemoveBillingExemptionInput{CustomerID: m.customer, IdempotencyKey: &end}
	_, err = m.RemoveExemption(t.Context(), m.caller, remove)
	check(t, err)
	ended, err := m.RemoveExemption(t.Context(), m.caller, remove)
	check(t, err)
	if !ended.Replayed || ended.Value.EndedAt == nil {
		t.Error("the end was not replayed")
	}
	remove.IdempotencyKey = nil
	_, err = m.RemoveExemption(context.Background(), m.caller, remove)
	wantRefusal(t, err, "NOT_EXEMPT input.customerId")
	stranger := domain.NewID[domain.CustomerID]()
	_, err = m.GrantExemption(t.Context(), m.caller, metering.GrantBillingExemptionInput{CustomerID: stranger, Reason: "x"})
	wantRefusal(t, err, "NOT_FOUND input.customerId")
	_, err = m.RemoveExemption(t.Context(), m.caller, metering.RemoveBillingExemptionInput{CustomerID: stranger})
	wantRefusal(t, err, "NOT_FOUND input.customerId")
}
