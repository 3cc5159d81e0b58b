package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/internal/database"
	"countersign/internal/testdb"
	"countersign/internal/testdb/bouncer"
	"countersign/internal/testdb/pgproxy"
)

// pooled is a database behind a PgBouncer, and the network between the two.
type pooled struct {
	*testdb.DB
	proxy   *pgproxy.Proxy
	bouncer *bouncer.Bouncer
	login   string
}

func newPooled(t *testing.T, more ...string) *pooled {
	t.Helper()
	d := testdb.New(t)
	p := &pooled{DB: d, proxy: pgproxy.New(t, d.URL), login: "pooled_" + d.Name}
	d.Exec(t, "CREATE ROLE "+p.login+" LOGIN IN ROLE "+database.RuntimeRole)
	t.Cleanup(func() {
		d.Exec(t, "DROP OWNED BY "+p.login)
		d.Exec(t, "DROP ROLE "+p.login)
	})
	p.bouncer = bouncer.New(t, as(t, p.proxy.URL(), p.login), more...)
	return p
}

// as is a URL for another login.
func as(t *testing.T, target, login string) string {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User(login)
	return u.String()
}

// environ is what a server behind the pooler is told; parameters go behind its DATABASE_URL.
func (p *pooled) environ(parameters string, more ...string) []string {
	target := p.bouncer.URL
	if parameters != "" {
		target += "&" + parameters
	}
	return append([]string{"DATABASE_URL=" + target, "DATABASE_DIRECT_URL=" + p.URL, "COUNTERSIGN_LOG_LEVEL=DEBUG", "COUNTERSIGN_RECONCILE_INTERVAL=1h"}, more...)
}

// stale is what a server says whose statements are not on the session that a pooler gave it, or whose
// values were not understood there.
var stale = regexp.MustCompile(`\b(26000|42P05|22P02|08P01|prepared statement)\b`)

// Case 43: behind PgBouncer in transaction mode, whose sessions are fewer than the server's
// connections, everything that the server does works, under load and as its jobs do it: whether it
// notices the pooler by itself or is told how to send its statements, and whether the pooler carries
// prepared statements or does not.
func TestCase43BehindPgBouncer(t *testing.T) {
	t.Parallel()
	poolers := map[string][]string{"as it comes": nil}
	if bouncer.PreparesStatements(t) {
		poolers["without prepared statements"] = []string{"max_prepared_statements = 0"}
	}
	for pooler, lines := range poolers {
		for _, parameters := range []string{"", "default_query_exec_mode=exec", "default_query_exec_mode=cache_describe"} {
			t.Run(pooler+" "+parameters, func(t *testing.T) {
				t.Parallel()
				p := newPooled(t, lines...)
				s := serve(t, t.TempDir(), p.environ(parameters)...)
				const workers, rounds = 8, 4
				var done sync.WaitGroup
				for w := range workers {
					done.Go(func() {
						for i := range rounds {
							everything(t, s, fmt.Sprintf("%d-%d", w, i))
						}
					})
				}
				done.Wait()
				want := workers * rounds
				for sql, least := range map[string]int{
					"SELECT count(*) FROM orders WHERE status = 'PAID' AND idempotency_key LIKE '%-%'": want,
					"SELECT count(*) FROM invoices WHERE kind = 'DIRECT'":                              want,
					"SELECT count(*) FROM api_keys WHERE status = 'REVOKED'":                           want,
				} {
					if n := testdb.Scan[int](t, p.DB, sql); n < least {
						t.Errorf("%s: %d, want %d", sql, n, least)
					}
				}
				testdb.Eventually(t, func() bool { // the jobs run at the start
					return testdb.Scan[int](t, p.DB, "SELECT count(DISTINCT kind) FROM ops.river_job WHERE state = 'completed'") >= 2
				})
				if out, err := output(t, t.TempDir(), p.environ(parameters), "doctor"); err != nil || !strings.HasPrefix(out, "healthy") {
					t.Errorf("the doctor says %q, %v", out, err)
				}
				s.stop(t, syscall.SIGTERM)
				if line := regexp.MustCompile(`(?m)^.*` + stale.String() + `.*$`).FindString(s.log.String() + p.bouncer.Log()); line != "" {
					t.Errorf("it was said: %s", line)
				}
			})
		}
	}
}

// everything does what a server does for its clients, and reads it back.
func everything(t *testing.T, s *running, name string) {
	ask := func(query string, args ...any) string {
		body, err := json.Marshal(map[string]string{"query": fmt.Sprintf(query, args...)})
		if err != nil {
			t.Error(err)
		}
		_, answer, err := s.send(context.Background(), body)
		if err != nil || strings.Contains(answer, `"errors"`) || strings.Contains(answer, `"message"`) {
			t.Errorf("%s: %s, %v", fmt.Sprintf(query, args...), answer, err)
		}
		return answer
	}
	customer, series := s.value("customer"), s.value("series")
	ask(`mutation { allocateInvoice(input: {seriesId: %q, customerId: %q, currency: "EUR", lines: [{description: "Pawn", quantity: 1, unitAmountMinor: 100}]}) {
		invoice { number customer { name } lines { description } } userErrors { message } } }`, series, customer)
	if _, err := s.place(context.Background(), name, "sim_ok"); err != nil {
		t.Error(err)
	}
	key := regexp.MustCompile(`key_\w+`).FindString(ask(`mutation { createApiKey(input: {customerId: %q, name: "desk", unitPrice: "0.5"}) { apiKey { id } userErrors { message } } }`, customer))
	ask(`mutation { recordUsage(input: {idempotencyKey: %q, events: [{id: %q, apiKeyId: %q, quantity: 3, occurredAt: %q}]}) { accepted userErrors { message } } }`, name, name, key, time.Now().Format(time.RFC3339))
	ask(`mutation { revokeApiKey(input: {apiKeyId: %q}) { settlement { outcome receipt { result } } userErrors { message } } }`, key)
	ask(`{ customers { nodes { invoices(first: 2) { nodes { id history { event } } } } } invoices(filter: {status: PENDING, customerId: %[1]q}, last: 2) { nodes { id } }
		orders(filter: {customerId: %[1]q, status: PAID}, first: 2) { nodes { items { product { stock } } payments { id } } }
		settlements(filter: {customerId: %[1]q}) { nodes { id } } apiKeys(filter: {customerId: %[1]q}) { nodes { settlements { id } } }
		invoiceSeriesList { nodes { invoices(last: 2) { nodes { number } } } } products(filter: {onlyActive: true}) { nodes { stock } } paymentEvents { nodes { eventId } } }`, customer)
}

// The time-outs of the login reach a session behind the pooler, which drops start-up parameters: a
// server that is frozen in a transaction holds nothing for long.
func TestTimeoutsReachThroughThePooler(t *testing.T) {
	t.Parallel()
	p := newPooled(t)
	if out, err := output(t, t.TempDir(), p.environ(""), "migrate"); err != nil {
		t.Fatal(out, err)
	}
	conn, err := pgx.Connect(t.Context(), p.bouncer.URL+"&default_query_exec_mode=exec")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for _, setting := range database.Timeouts {
		name, value, _ := strings.Cut(strings.ReplaceAll(setting, "'", ""), " = ")
		var got string
		if err := conn.QueryRow(t.Context(), "SELECT current_setting($1)", name).Scan(&got); err != nil || got != value {
			t.Errorf("%s is %q, want %q: %v", name, got, value, err)
		}
	}
}

// What cannot work behind a pooler stops the start with one line that says what to set.
func TestRefusedBehindAPooler(t *testing.T) {
	t.Parallel()
	p := newPooled(t)
	owner := bouncer.New(t, p.proxy.URL())
	for want, environ := range map[string][]string{
		"DATABASE_DIRECT_URL":         {"DATABASE_URL=" + p.bouncer.URL},
		"cannot work as countersign_": {"DATABASE_URL=" + owner.URL, "DATABASE_DIRECT_URL=" + p.URL},
		"simple protocol":             p.environ("default_query_exec_mode=simple_protocol"),
	} {
		if out, err := output(t, t.TempDir(), environ, "serve"); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q, %v; want one line with %q", out, err, want)
		}
	}
}

// A pooler that is killed in the middle of a transaction, and one that was restarted in between, lose
// nothing and do nothing twice: the same key answers with one order.
func TestAPoolerThatIsKilled(t *testing.T) {
	t.Parallel()
	p := newPooled(t)
	s := serve(t, t.TempDir(), p.environ("")...)
	s.allocate(t)
	p.bouncer.Kill()
	p.bouncer.Start()
	s.allocate(t) // each of the server's connections is gone, and its statements with them

	for _, at := range []string{"before COMMIT", "after COMMIT"} {
		hold := p.proxy.Hold(pgproxy.Commit())
		if at == "after COMMIT" {
			hold.Release()
			hold = p.proxy.HoldAnswer(pgproxy.Commit())
		}
		first := make(chan error, 1)
		go func() {
			_, err := s.place(context.Background(), at, "sim_ok")
			first <- err
		}()
		if err := hold.Wait(soon(t)); err != nil {
			t.Fatal(err)
		}
		p.bouncer.Kill()
		if at == "before COMMIT" {
			hold.Cut()
		} else {
			hold.Release()
		}
		p.bouncer.Start()
		if err := <-first; err != nil && !strings.Contains(err.Error(), "OUTCOME_UNKNOWN") && !strings.Contains(err.Error(), "UNAVAILABLE") && !strings.Contains(err.Error(), "BUSY") {
			t.Errorf("killed %s: %v", at, err)
		}
		var got answered
		testdb.Eventually(t, func() (ok bool) {
			var err error
			got, err = s.place(context.Background(), at, "sim_ok")
			return err == nil
		})
		if n := testdb.Scan[int](t, p.DB, "SELECT count(*) FROM orders WHERE idempotency_key = $1", at); n != 1 || got.Order.ID == "" {
			t.Errorf("killed %s: %d orders, the last answer is %+v", at, n, got)
		}
	}
}
