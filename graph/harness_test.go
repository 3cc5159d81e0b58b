package graph_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/graph"
	"countersign/internal/auth"
	"countersign/internal/invoicing"
	"countersign/internal/metering"
	"countersign/internal/ordering"
	"countersign/internal/payment"
	"countersign/internal/requestid"
	"countersign/internal/testdb"
	"countersign/internal/txn"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

// api is a server on a database of its own, as a client reaches it: over HTTP, with real tokens.
// It has two tenants that must not know of each other.
type api struct {
	db          *testdb.DB
	url         string
	handler     http.Handler
	log         *logs
	service     *invoicing.Service
	tokens      *auth.Tokens
	ordering    *ordering.Service
	metering    *metering.Service
	demo, other *tenant
}

// newAPI makes a server. tune has the last word on how it is made: on which pool, or with which
// part missing. The tenants' rows are made beside it, on the database's own pool.
func newAPI(t testing.TB, tune ...func(d *testdb.DB, o *graph.Options)) *api {
	t.Helper()
	d := testdb.New(t)
	db := txn.New(d.Pool, txn.Settings{})
	a := &api{db: d, log: &logs{}, service: invoicing.New(db), ordering: newOrdering(db), metering: metering.New(db)}
	a.tokens = auth.NewTokens(db)
	a.demo, a.other = a.newTenant(t, a.tokens, "demo"), a.newTenant(t, a.tokens, "other")
	options := graph.Options{
		Resolver:     &graph.Resolver{DB: db, Tokens: a.tokens, Invoicing: a.service, Ordering: a.ordering, Metering: a.metering},
		Authenticate: a.tokens.Authenticate,
		Logger:       slog.New(requestid.LogHandler{Handler: slog.NewJSONHandler(a.log, &slog.HandlerOptions{Level: slog.LevelDebug})}),
	}
	for _, f := range tune {
		f(d, &options)
	}
	a.handler = graph.NewHandler(options)
	server := httptest.NewServer(requestid.Handler(a.handler))
	t.Cleanup(server.Close)
	a.url = server.URL
	return a
}

// newOrdering is ordering by the simulated provider.
func newOrdering(db *txn.DB) *ordering.Service {
	return ordering.New(db, payment.NewSimulated(db, 10*time.Millisecond, []string{webhookSecret}))
}

// webhookSecret signs the provider's webhooks.
const webhookSecret = "a secret of the test 1"

// vars are the variables of a request. A json.RawMessage in them is sent as it stands, so that a
// test can choose how a number is spelt.
type vars = map[string]any

// do asks, as whoever has the token; "" is nobody.
func (a *api) do(t testing.TB, token, query string, variables vars) response {
	t.Helper()
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		t.Fatalf("cannot encode the request: %v", err)
	}
	return a.send(t, http.MethodPost, "", token, map[string]string{"Content-Type": "application/json"}, string(body))
}

// doAside asks in the background. The channel is closed without an answer if there is none.
func (a *api) doAside(t testing.TB, token, query string, variables vars) <-chan response {
	answered := make(chan response, 1)
	go func() {
		defer close(answered)
		answered <- a.do(t, token, query, variables)
	}()
	return answered
}

// must asks for what has to work: without an error, and without a user error.
func (a *api) must(t testing.TB, token, query string, variables vars) response {
	t.Helper()
	r := a.do(t, token, query, variables)
	failed := r.status != http.StatusOK || len(r.errors) > 0 || r.data == nil
	for _, payload := range r.data {
		if p, ok := payload.(map[string]any); ok {
			userErrors, _ := p["userErrors"].([]any)
			failed = failed || len(userErrors) > 0
		}
	}
	if failed {
		t.Fatalf("%s\nwas answered %d %s", query, r.status, r.body)
	}
	return r
}

// send makes any HTTP request; path is what follows the server's address.
func (a *api) send(t testing.TB, method, path, token string, header map[string]string, body string) response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, a.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatalf("no request: %v", err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for name, value := range header {
		request.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatalf("the answer broke off: %v", err)
	}
	r := response{status: answer.StatusCode, header: answer.Header, body: string(raw)}
	wire := struct {
		Data       *map[string]any
		Errors     *[]wireError
		Extensions *map[string]any
	}{&r.data, &r.errors, &r.extensions}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&wire); err != nil && len(raw) > 0 {
		t.Fatalf("the answer is no JSON: %v: %s", err, raw)
	}
	r.wantContract(t)
	return r
}

// abandon asks, and hangs up when ctx ends; what is answered nobody reads.
func (a *api) abandon(ctx context.Context, t testing.TB, token, query string) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, strings.NewReader(`{"query": `+quoted(t, query)+`}`))
	if err != nil {
		t.Errorf("no request: %v", err)
		return
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	if answer, err := http.DefaultClient.Do(request); err == nil {
		t.Errorf("the server answered %s before the client hung up", answer.Status)
		_ = answer.Body.Close()
	}
}

// count is how many rows of a table meet a condition.
func (a *api) count(t testing.TB, table, where string, args ...any) (n int) {
	t.Helper()
	if err := a.db.Pool.QueryRow(t.Context(), "SELECT count(*) FROM "+table+" WHERE "+where, args...).Scan(&n); err != nil {
		t.Fatalf("cannot count: %v", err)
	}
	return n
}

// logs is the server's log.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
