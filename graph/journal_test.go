package graph_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"countersign/graph"
	"countersign/internal/accesslog"
	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/requestid"
	"countersign/internal/testdb"
)

// testCallers recognises callers by a test's own rule.
func testCallers(read func(token string) auth.Caller) func(context.Context, string) (auth.Caller, error) {
	return func(_ context.Context, token string) (auth.Caller, error) { return read(token), nil }
}

// counted collects what the metrics are told.
type counted struct {
	mu    sync.Mutex
	calls []string
}

func (c *counted) field(object, field, code string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, object+"."+field+" "+code)
}

// TestJournal: the log and the metrics are told of every root field what came of it: done, a user
// error, an error of its own, a bad argument, a role or a scope that is missing, and what was not run
// after a failure; nothing of what the client wrote but the operation's name and a hash of its key.
func TestJournal(t *testing.T) {
	t.Parallel()
	told := &counted{}
	a := newAPI(t, func(_ *testdb.DB, o *graph.Options) { o.Observe = told.field })
	noted := make(chan []slog.Attr, 1)
	inner := a.url
	for name, c := range map[string]struct {
		token, query string
		told, log    string
	}{
		"done": {a.demo.admin, `mutation Make { createCustomer(input: {name: "hidden", currency: "EUR", idempotencyKey: "k"}) { replayed } }`,
			"Mutation.createCustomer OK", `[{"field":"createCustomer","key":"` + accesslog.HashKey("k") + `"}]`},
		"a user error": {a.demo.admin, `mutation { fulfillOrder(input: {orderId: "` + absent("ord") + `", idempotencyKey: "k"}) { replayed } }`,
			"Mutation.fulfillOrder NOT_FOUND", `[{"field":"fulfillOrder","key":"` + accesslog.HashKey("k") + `","codes":["NOT_FOUND"]}]`},
		"a failure, and what was not run after it": {a.demo.admin, `mutation { a: createCustomer(input: {name: "", currency: "EUR", idempotencyKey: "k"}) { replayed } createCustomer(input: {name: "x", currency: "EUR", idempotencyKey: "l"}) { replayed } }`,
			"Mutation.createCustomer BAD_INPUT, Mutation.createCustomer NOT_RUN",
			`[{"field":"createCustomer","key":"` + accesslog.HashKey("k") + `","codes":["BAD_INPUT"]},{"field":"createCustomer","key":"` + accesslog.HashKey("l") + `","codes":["NOT_RUN"]}]`},
		"a bad argument": {a.demo.admin, `mutation { voidInvoice(input: {invoiceId: "nonsense", reason: "x", idempotencyKey: "k"}) { replayed } }`,
			"Mutation.voidInvoice BAD_INPUT", `[{"field":"voidInvoice","key":"` + accesslog.HashKey("k") + `","codes":["BAD_INPUT"]}]`},
		"a role": {a.demo.customer, `mutation { createCustomer(input: {name: "x", currency: "EUR", idempotencyKey: "k"}) { replayed } }`,
			"Mutation.createCustomer FORBIDDEN", `[{"field":"createCustomer","key":"` + accesslog.HashKey("k") + `","codes":["FORBIDDEN"]}]`},
		"queries": {a.demo.service, `query Look { a: customers { nodes { id } } doctor { healthy } }`, "Query.customers OK, Query.doctor FORBIDDEN", `null`},
	} {
		told.calls = nil
		server := httptest.NewServer(requestid.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, entry := accesslog.With(r.Context())
			a.handler.ServeHTTP(w, r.WithContext(ctx))
			noted <- append(entry.Who(), entry.What()...)
		})))
		a.url = server.URL
		a.do(t, c.token, c.query, nil)
		attrs := <-noted
		server.Close()
		slices.Sort(told.calls)
		if got := strings.Join(told.calls, ", "); got != c.told {
			t.Errorf("%s: the metrics are told %s, want %s", name, got, c.told)
		}
		mutations, operation, caller := "null", "", ""
		for _, attr := range attrs {
			switch attr.Key {
			case "mutations":
				text, err := json.Marshal(attr.Value.Any())
				if err != nil {
					t.Fatal(err)
				}
				mutations = string(text)
			case "operation":
				operation = attr.Value.String()
			case "caller":
				caller = attr.Value.String()
			}
		}
		named := strings.Contains(c.query, "Make") || strings.Contains(c.query, "Look")
		if mutations != c.log || !strings.HasPrefix(caller, "tok_") || (operation != "") != named {
			t.Errorf("%s: the log is told %s by %s as %q, want %s", name, mutations, caller, operation, c.log)
		}
	}
	// A key that the server made is known by its hash, too.
	told.calls = nil
	a.url = inner
	r := a.must(t, a.demo.admin, `mutation { createCustomer(input: {name: "x", currency: "EUR"}) { replayed } }`, nil)
	if key, _ := r.extensions["idempotencyKey"].(string); key == "" || domain.Code(told.calls[0]) != "Mutation.createCustomer OK" {
		t.Errorf("%v, %v", r.extensions, told.calls)
	}
}
