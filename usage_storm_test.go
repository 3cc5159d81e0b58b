package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/internal/testdb"
)

// The storms over real servers: how many, and the one to replay.
const (
	stormsVariable    = "COUNTERSIGN_STORMS"
	stormSeedVariable = "COUNTERSIGN_STORM_SEED"
)

// Sixteen keys of one customer are revoked at once over four server processes, while invoices are
// paid, waived and voided and the customer's exemption is granted and removed at random, 25 times.
// After each the jobs' command finds everything a place, and the doctor finds every unit and every
// amount in exactly one. The seed fixes what each worker does; more storms by the variable.
func TestStormOverFourProcesses(t *testing.T) {
	t.Parallel()
	storms, seed := 25, uint64(time.Now().UnixNano())
	if text := os.Getenv(stormsVariable); text != "" {
		storms, _ = strconv.Atoi(text)
	}
	if text := os.Getenv(stormSeedVariable); text != "" {
		storms = 1
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	d := testdb.New(t)
	var servers []*running
	for range 4 {
		servers = append(servers, serve(t, t.TempDir(), "DATABASE_URL="+d.URL, "COUNTERSIGN_RECONCILE_INTERVAL=1h", "COUNTERSIGN_DATABASE_MAX_CONNS=8"))
	}
	for i := range storms {
		s := storm{servers, seed + uint64(i)}
		s.run(t)
		if t.Failed() {
			t.Fatalf("replay it with %s=%d", stormSeedVariable, s.seed)
		}
	}
	m := &metered{DB: d}
	for range 2 { // whatever the last look of the first pass has moved
		if out := m.command(t, "settle"); !strings.Contains(out, "left 0") {
			t.Errorf("settle says %s", out)
		}
	}
	m.command(t, "doctor")
	if n := testdb.Scan[int](t, d, "SELECT count(*) FROM settlements WHERE outcome = 'PENDING'"); n != 0 {
		t.Errorf("%d settlements are pending", n)
	}
	if n := testdb.Scan[int](t, d, `SELECT count(*) FROM invoices i WHERE kind = 'USAGE' AND status = 'OPEN'
		AND EXISTS (SELECT FROM billing_exemptions e WHERE e.customer_id = i.customer_id AND e.ended_at IS NULL)`); n != 0 {
		t.Errorf("%d open invoices are of exempt customers", n)
	}
}

type storm struct {
	servers []*running
	seed    uint64
}

// ask posts a mutation to one of the servers and returns the first id of a kind in the answer.
func (s storm) ask(t *testing.T, r *rand.Rand, kind, query string, args ...any) (id string) {
	answer, err := s.servers[r.IntN(len(s.servers))].try(fmt.Sprintf(query, args...))
	if err != nil || strings.Contains(answer, `"code":"INTERNAL"`) || strings.Contains(answer, `"code":"BAD_INPUT"`) {
		t.Errorf("seed %d: %s, %v", s.seed, answer, err)
	}
	_, tail, found := strings.Cut(answer, `"`+kind+"_")
	if !found {
		return ""
	}
	tail, _, _ = strings.Cut(tail, `"`)
	return kind + "_" + tail
}

func (s storm) run(t *testing.T) {
	t.Helper()
	r := rand.New(rand.NewPCG(s.seed, 0))
	customer := s.ask(t, r, "cus", `mutation { createCustomer(input: {name: "Storm", currency: "EUR"}) { customer { id } } }`)
	keys := make([]string, 16)
	events := make([]string, len(keys))
	for i := range keys {
		keys[i] = s.ask(t, r, "key", `mutation { createApiKey(input: {customerId: %q, name: "k", unitPrice: %q}) { apiKey { id } } }`, customer, []string{"0.3", "1", "12.345", "0.01"}[i%4])
		events[i] = fmt.Sprintf(`{id: "%d %d", apiKeyId: %q, quantity: %d, occurredAt: %q}`, s.seed, i, keys[i], 1+r.IntN(50), time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"))
	}
	s.ask(t, r, "", `mutation { recordUsage(input: {events: [%s]}) { accepted } }`, strings.Join(events, " "))
	var group sync.WaitGroup
	for i, key := range keys {
		group.Go(func() {
			w := rand.New(rand.NewPCG(s.seed, uint64(i+1)))
			s.disturb(t, w, customer)
			s.ask(t, w, "", `mutation { revokeApiKey(input: {apiKeyId: %q}) { settlement { outcome } userErrors { code } } }`, key)
			s.disturb(t, w, customer)
		})
	}
	group.Wait()
}

// disturb does something at random to the customer or to one of its invoices.
func (s storm) disturb(t *testing.T, r *rand.Rand, customer string) {
	switch r.IntN(6) {
	case 0:
		s.ask(t, r, "", `mutation { grantBillingExemption(input: {customerId: %q, reason: "A storm"}) { userErrors { code } } }`, customer)
	case 1:
		s.ask(t, r, "", `mutation { removeBillingExemption(input: {customerId: %q}) { userErrors { code } } }`, customer)
	case 2, 3, 4:
		s.move(t, r, customer)
	}
}

// move pays, waives or voids one of the customer's invoices as it was a moment ago.
func (s storm) move(t *testing.T, r *rand.Rand, customer string) {
	answer, err := s.servers[r.IntN(len(s.servers))].try(fmt.Sprintf(`{ invoices(filter: {customerId: %q}) { nodes { id version amountDue { amountMinor } } } }`, customer))
	var list struct {
		Data struct {
			Invoices struct {
				Nodes []struct {
					ID, Version string
					AmountDue   struct{ AmountMinor string }
				}
			}
		}
	}
	if err != nil || json.Unmarshal([]byte(answer), &list) != nil {
		t.Errorf("seed %d: %s, %v", s.seed, answer, err)
	}
	nodes := list.Data.Invoices.Nodes
	if len(nodes) == 0 {
		return
	}
	switch i := nodes[r.IntN(len(nodes))]; r.IntN(4) {
	case 0, 1:
		s.ask(t, r, "", `mutation { recordInvoicePayment(input: {invoiceId: %q, amountMinor: %q, reference: "storm"}) { userErrors { code } } }`, i.ID, i.AmountDue.AmountMinor)
	case 2:
		s.ask(t, r, "", `mutation { waiveInvoice(input: {invoiceId: %q, version: %q, reason: "goodwill"}) { userErrors { code } } }`, i.ID, i.Version)
	case 3:
		s.ask(t, r, "", `mutation { voidInvoice(input: {invoiceId: %q, reason: "wrong"}) { userErrors { code } } }`, i.ID)
	}
}
