package metering_test

import (
	"context"
	"testing"

	"countersign/internal/domain"
	"countersign/internal/metering"
	"countersign/internal/testdb/pgproxy"
	"countersign/internal/txn"
)

// The connection is lost before, and after, each message that a revocation sends: whatever its
// caller is told, asking again under the same key and one pass of the job bill the usage, once.
func TestLostAtEachMessageOfARevocation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		cut  func(p *pgproxy.Proxy, at pgproxy.Point) *pgproxy.Fault
	}{
		{"before", (*pgproxy.Proxy).CutBefore},
		{"after", (*pgproxy.Proxy).CutAfter},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := newMeter(t)
			proxy := pgproxy.New(t, m.URL)
			far := m.on(txn.New(m.PoolAt(t, proxy.URL(), 1), txn.Settings{Clock: m.clock.now}))
			far.revoke(t, m.key(t, "1")) // connected, and its statements prepared
			points := 0
			for n, reached := 1, true; reached; n++ {
				key, ask := m.used(t, "1", 1), "ask again"+m.event(domain.APIKeyID{}, 1).ID
				in := metering.RevokeAPIKeyInput{APIKeyID: key, IdempotencyKey: &ask}
				fault := c.cut(proxy, pgproxy.FrontendMessage(n))
				_, err := far.Revoke(context.Background(), m.caller, in)
				fault.Disarm()
				reached = fault.Count() > 0
				switch refusal(err) {
				case "", "OUTCOME_UNKNOWN", "UNAVAILABLE", "BUSY":
				default:
					t.Errorf("cut at message %d: told %q (%v)", n, refusal(err), err)
				}
				if n%3 == 0 { // the client does not ask again
					m.settle(t)
				}
				again, err := far.Revoke(context.Background(), m.caller, in)
				check(t, err)
				m.settle(t)
				if len(again.Value.Settlements) != 1 || again.Value.Settlement.Quantity != 1 {
					t.Errorf("cut at message %d: %d settlements", n, len(again.Value.Settlements))
				}
				if lines := m.count(t, "invoice_lines l JOIN settlements s ON s.id = l.settlement_id WHERE s.api_key_id = $1", key); lines != 1 {
					t.Errorf("cut at message %d: %d lines", n, lines)
				}
				points = n
			}
			if points < 40 {
				t.Errorf("only %d messages", points)
			}
			if got := m.monthly(t); int(got.TotalMinor) != points {
				t.Errorf("%d units are billed, want %d", got.TotalMinor, points)
			}
			m.sound(t)
		})
	}
}
