package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"countersign/internal/testdb"
	"countersign/internal/testdb/pgproxy"
)

// metered is a demo tenant on a database of its own, behind a proxy that a test stops its servers at.
type metered struct {
	*testdb.DB
	proxy *pgproxy.Proxy
}

func newMetered(t *testing.T) *metered {
	d := testdb.New(t)
	return &metered{d, pgproxy.New(t, d.URL)}
}

// serve starts a server behind the proxy, whose jobs look for what is older than the interval.
func (m *metered) serve(t *testing.T, interval string) *running {
	t.Helper()
	return serve(t, t.TempDir(), "DATABASE_URL="+m.proxy.URL(), "DATABASE_DIRECT_URL="+m.URL, "COUNTERSIGN_RECONCILE_INTERVAL="+interval)
}

// killedAt starts to revoke the demo's key on a server, and kills it with -9 where it stands before
// a query.
func (m *metered) killedAt(t *testing.T, victim *running, query string) {
	t.Helper()
	held := m.proxy.Hold(pgproxy.Query(query))
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = victim.try(victim.revocation())
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := held.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	victim.stop(t, os.Kill)
	<-gone
	held.Cut()
}

func (r *running) revocation() string {
	return fmt.Sprintf(`mutation { revokeApiKey(input: {apiKeyId: %q}) { settlement { id outcome quantity invoice { id status } } settlements { id } userErrors { message } } }`, r.value("key"))
}

// try posts a query and returns the body, for calls that may never be answered.
func (r *running) try(query string) (string, error) {
	text, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		return "", err
	}
	_, body, err := r.send(context.Background(), text)
	return body, err
}

func (m *metered) command(t *testing.T, args ...string) string {
	t.Helper()
	out, err := output(t, t.TempDir(), []string{"DATABASE_URL=" + m.URL}, args...)
	if err != nil {
		t.Errorf("%v: %v", args, err)
	}
	return strings.TrimSpace(out)
}

// outcomes are those of the settlements of the demo's key.
func (m *metered) outcomes(t *testing.T) string {
	t.Helper()
	return testdb.Scan[string](t, m.DB, `SELECT coalesce(string_agg(outcome, ' ' ORDER BY id), '') FROM settlements`)
}

// Case 36: the process is killed between the revocation and the fold. The settlement is there, and
// the next pass bills it once; a pass after that finds nothing; revoking again answers with it.
func TestCase36KilledBetweenRevocationAndFold(t *testing.T) {
	t.Parallel()
	m := newMetered(t)
	m.killedAt(t, m.serve(t, "1h"), "SharePeriod")
	if got := m.outcomes(t); got != "PENDING" {
		t.Fatalf("the killed server has left %q", got)
	}
	if got := m.command(t, "settle"); !strings.Contains(got, "settlements placed 1, left 0") {
		t.Errorf("the first pass: %s", got)
	}
	if got := m.command(t, "settle"); !strings.Contains(got, "settlements placed 0, left 0") {
		t.Errorf("the second pass: %s", got)
	}
	next := m.serve(t, "1h")
	first, err := next.try(next.revocation())
	if err != nil || !strings.Contains(first, `"outcome":"FOLDED","quantity":"1300"`) {
		t.Errorf("revoked again: %s, %v", first, err)
	}
	if again, err := next.try(next.revocation()); err != nil || body(again) != body(first) {
		t.Errorf("and again: %s, %v; before %s", again, err, first)
	}
	m.command(t, "doctor")
}

// body is an answer without its extensions.
func body(answer string) string {
	head, _, _ := strings.Cut(answer, `,"extensions"`)
	return head
}

// The announcement alone has been committed: the pass revokes the key and bills it.
func TestKilledBetweenAnnouncementAndRevocation(t *testing.T) {
	t.Parallel()
	m := newMetered(t)
	m.killedAt(t, m.serve(t, "1h"), "LockAPIKey")
	if got := m.outcomes(t); got != "" {
		t.Fatalf("the killed server has left %q", got)
	}
	if got := m.command(t, "settle"); !strings.Contains(got, "revocations finished 1") {
		t.Errorf("the pass: %s", got)
	}
	if got := m.outcomes(t); got != "FOLDED" {
		t.Errorf("after the pass: %q", got)
	}
	m.command(t, "doctor")
}

// Case 36: the pass is really scheduled: nobody gives a command, and the next server bills.
func TestCase36ThePassIsScheduled(t *testing.T) {
	t.Parallel()
	m := newMetered(t)
	m.killedAt(t, m.serve(t, "1h"), "SharePeriod")
	m.Exec(t, "DELETE FROM ops.river_leader") // the dead server's lease, which ends after 15 seconds
	m.serve(t, "1s")
	testdb.Eventually(t, func() bool { return m.outcomes(t) == "FOLDED" })
	m.command(t, "doctor")
}

// The process is killed between a fold that waives and the look that verifies it, and the exemption
// ends meanwhile, whose own look is killed too: the sweep reinstates the invoice.
func TestKilledBetweenWaiveAndLook(t *testing.T) {
	t.Parallel()
	m := newMetered(t)
	victim := m.serve(t, "1h")
	grant := fmt.Sprintf(`mutation { grantBillingExemption(input: {customerId: %q, reason: "A partner"}) { userErrors { message } } }`, victim.value("customer"))
	if answer, err := victim.try(grant); err != nil || !strings.Contains(answer, `"userErrors":[]`) {
		t.Fatalf("%s, %v", answer, err)
	}
	m.killedAt(t, victim, "ListLookedAtInvoices")
	status := func() string {
		return testdb.Scan[string](t, m.DB, `SELECT status || CASE WHEN waive_verified_at IS NULL THEN '' ELSE ' verified' END FROM invoices WHERE kind = 'USAGE'`)
	}
	if got := status(); got != "WAIVED" || m.outcomes(t) != "FOLDED_WAIVED" {
		t.Fatalf("the killed server has left the invoice %s, the settlement %s", got, m.outcomes(t))
	}
	m.Exec(t, `UPDATE billing_exemptions SET ended_by = 'test', ended_at = now(), end_operation_id = gen_random_uuid(), end_fingerprint = '\x01'
		WHERE customer_id = (SELECT customer_id FROM invoices WHERE kind = 'USAGE')`)
	m.command(t, "settle")
	if got := status(); got != "OPEN" {
		t.Errorf("after the sweep the invoice is %s", got)
	}
	m.command(t, "doctor")
}
