package metering_test

import "testing"

// Case 32: 58 events of 0.077 minor units on one key are 4 at the month's end, not 58 times nothing;
// ten keys of 0.4 are 4; what the rounding added is told with the invoice.
func TestCase32MoneyIsRoundedOnce(t *testing.T) {
	t.Parallel()
	one := newMeter(t)
	for _, c := range []struct {
		name, price   string
		keys, events  int
		book, rounded string
	}{
		{"58 events of 0.077", "0.077", 1, 58, "USAGE PENDING 4 #1", "-0.466"},
		{"ten keys of 0.4", "0.4", 10, 1, "USAGE PENDING 4 #1", "0"},
		{"half to even, down", "0.5", 5, 1, "USAGE PENDING 2 #1", "-0.5"},
		{"half to even, up", "0.5", 7, 1, "USAGE PENDING 4 #1", "0.5"},
		{"less than half", "0.4", 1, 1, "USAGE PENDING 0 #1", "-0.4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := one.afresh(t)
			m.clock.set(midJune)
			for range c.keys {
				key := m.key(t, c.price)
				for range c.events {
					m.use(t, key, 1)
				}
				m.revoke(t, key)
			}
			m.clock.set(inJuly)
			invoice := m.close(t, june).Invoice
			m.wantBooks(t, c.book)
			if got := m.list(t, "SELECT trim_scale(rounding_adjustment)::text FROM invoices WHERE id = $1", invoice.ID); got[0] != c.rounded {
				t.Errorf("rounded by %s, want %s", got[0], c.rounded)
			}
			m.sound(t)
		})
	}
}
