package metering_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"countersign/internal/domain"
	"countersign/internal/metering"
	"countersign/sqlc"
)

// A storm is replayed by its seed, in this variable; the other says how many there are.
const (
	stormSeed = "COUNTERSIGN_STORM_SEED"
	storms    = "COUNTERSIGN_STORMS"
)

// Sixteen keys of one customer, on four servers with pools of their own, are used and revoked while
// invoices are paid, waived and voided, exemptions come and go, and the month is closed, all at
// random. In the end, once the job has run, every unit and every amount is in exactly one place.
func TestStorm(t *testing.T) {
	t.Parallel()
	n, seed := 5, uint64(time.Now().UnixNano())
	if text := os.Getenv(storms); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		check(t, err)
	}
	if text := os.Getenv(stormSeed); text != "" {
		var err error
		n = 1
		seed, err = strconv.ParseUint(text, 10, 64)
		check(t, err)
	}
	one := newMeter(t)
	one.clock.set(inJuly.Add(time.Hour))
	servers := make([]*meter, 4)
	for i := range servers {
		servers[i] = one.another(t, 4)
	}
	for i := range n {
		storm(t, one.afresh(t), servers, seed+uint64(i))
		if t.Failed() {
			return
		}
	}
}

func storm(t *testing.T, m *meter, servers []*meter, seed uint64) {
	t.Helper()
	t.Logf("%s=%d", stormSeed, seed)
	keys := make([]domain.APIKeyID, 16)
	for i := range keys {
		keys[i] = m.key(t, []string{"0.3", "1", "12.345", "0.01"}[i%4])
	}
	var accepted atomic.Int64
	together(16, func(i int) {
		s := *servers[i%4]
		s.caller, s.customer = m.caller, m.customer
		w := worker{&s, rand.New(rand.NewPCG(seed, uint64(i))), &accepted}
		for range 4 {
			for range w.IntN(3) {
				w.use(t, keys[w.IntN(len(keys))])
			}
			w.disturb(t)
		}
		w.tolerate(t, w.revoke(keys[i]))
		w.disturb(t)
	})
	m.settle(t)
	m.settle(t) // whatever the last look of the first pass has moved
	if metered := m.list(t, "SELECT coalesce(sum(quantity), 0)::text FROM usage_events WHERE tenant_id = $1", m.caller.TenantID)[0]; metered != fmt.Sprint(accepted.Load()) {
		t.Errorf("%s units metered, %d accepted", metered, accepted.Load())
	}
	if n := m.count(t, "usage_events WHERE settlement_id IS NULL"); n != 0 {
		t.Errorf("%d events are not settled, though every key is revoked", n)
	}
	m.sound(t)
}

// worker does at random what customers, people and jobs do.
type worker struct {
	*meter
	*rand.Rand
	accepted *atomic.Int64
}

func (w worker) use(t *testing.T, key domain.APIKeyID) {
	e := w.event(key, 1+w.Int64N(50))
	e.OccurredAt = []time.Time{midJune, w.clock.now()}[w.IntN(2)]
	out, err := w.RecordUsage(context.Background(), w.caller, metering.RecordUsageInput{Events: []metering.UsageEventInput{e}})
	w.tolerate(t, err)
	w.accepted.Add(int64(out.Value.Accepted) * e.Quantity)
}

func (w worker) revoke(key domain.APIKeyID) error {
	_, err := w.Revoke(context.Background(), w.caller, metering.RevokeAPIKeyInput{APIKeyID: key})
	return err
}

func (w worker) disturb(t *testing.T) {
	ctx := context.Background()
	var err error
	switch w.IntN(12) {
	case 0, 1:
		_, err = w.GrantExemption(ctx, w.caller, metering.GrantBillingExemptionInput{CustomerID: w.customer, Reason: "a school"})
	case 2, 3:
		_, err = w.RemoveExemption(ctx, w.caller, metering.RemoveBillingExemptionInput{CustomerID: w.customer})
	case 4, 5, 6:
		if i := w.any(t); i != nil {
			_, err = w.Pay(ctx, w.caller, payment(i))
		}
	case 7:
		if i := w.any(t); i != nil {
			_, err = w.Waive(ctx, w.caller, metering.WaiveInvoiceInput{InvoiceID: i.ID, Version: i.UpdatedAt, Reason: "goodwill"})
		}
	case 8, 9:
		if i := w.any(t); i != nil {
			_, err = w.Void(ctx, w.caller, metering.VoidInvoiceInput{InvoiceID: i.ID, Reason: "wrong"})
		}
	case 10:
		_, err = w.CloseMonth(ctx, w.caller.TenantID, w.customer, june)
	case 11:
		_, err = w.Settle(ctx, 0)
	}
	w.tolerate(t, err)
}

// any is one of the customer's invoices.
func (w worker) any(t *testing.T) *sqlc.Invoice {
	all := w.invoices(t)
	if len(all) == 0 {
		return nil
	}
	return all[w.IntN(len(all))]
}

// tolerate fails on what nobody may be told, whatever happens at the same time.
func (w worker) tolerate(t *testing.T, err error) {
	if code, _, _ := strings.Cut(refusal(err), " "); !slices.Contains([]string{
		"", "ILLEGAL_TRANSITION", "STALE_VERSION", "AMOUNT_MISMATCH", "ALREADY_EXEMPT", "NOT_EXEMPT", "NOT_FOUND", "BUSY", "OUTCOME_UNKNOWN",
	}, code) {
		t.Errorf("told %q: %v", code, err)
	}
}
