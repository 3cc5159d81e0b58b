package metering_test

import (
	"testing"

	"countersign/internal/domain"
)

// Case 30: a key with 1,000 units and no open invoice is revoked: one invoice with the exact sum, and
// a receipt that says so.
func TestCase30TheFirstKeyOfAMonthOpensItsInvoice(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	key := m.used(t, "0.0123", 1000)
	out := m.revoke(t, key)
	if s := out.Settlement; s.Outcome != domain.SettlementFolded || s.Quantity != 1000 || s.Amount.Text('f') != "12.3000" || out.Key.Status != domain.APIKeyRevoked {
		t.Errorf("settled %d units for %s: %s, key %s", s.Quantity, &s.Amount, s.Outcome, out.Key.Status)
	}
	m.wantBooks(t, "USAGE OPEN 12")
	m.wantReceipt(t, key, "FOLD: FOLDED")
	m.sound(t)
}
