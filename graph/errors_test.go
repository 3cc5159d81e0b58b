package graph_test

import (
	"strings"
	"testing"

	"countersign/graph"
	"countersign/internal/requestid"
	"countersign/internal/testdb"
)

const (
	askInvoice  = `query ($id: ID!) { invoice(id: $id) { number lines { description } } }`
	makeOne     = `mutation ($name: String!, $key: String) { createCustomer(input: {name: $name, currency: "EUR", idempotencyKey: $key}) { customer { id } replayed userErrors { code } } }`
	fromTheLog  = "the operator finds the cause under the request's id"
	insideWords = "relation constraint violates sql panic stack runtime customers_ invoice_lines secret"
)

// TestFaultsOfTheDatabase: whatever PostgreSQL says, the client is told a stable code and nothing
// of the database; the log has the cause, under the id that the client was given. A trigger raises
// the code that the customer's name asks for, from inside the mutation.
func TestFaultsOfTheDatabase(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.db.Exec(t, `CREATE FUNCTION fault() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN RAISE EXCEPTION 'secret detail' USING ERRCODE = NEW.name, CONSTRAINT = 'secret_key'; END $$;
		CREATE TRIGGER fault BEFORE INSERT ON customers FOR EACH ROW WHEN (NEW.name ~ '^[0-9A-Z]{5}$') EXECUTE FUNCTION fault()`)
	for sqlstate, code := range map[string]string{
		"40P01": "BUSY", "40001": "BUSY", "55P03": "BUSY", "57014": "BUSY", "53300": "BUSY", // nothing was applied
		"53100": "UNAVAILABLE", "25006": "UNAVAILABLE",
		"57P01": "OUTCOME_UNKNOWN", "08006": "OUTCOME_UNKNOWN", // the statement is its own COMMIT
		"22P02": "BAD_INPUT", "22021": "BAD_INPUT",
		"23505": "INTERNAL", "23503": "INTERNAL", "23514": "INTERNAL", // constraints that nobody knows
		"0A000": "INTERNAL", "42P01": "INTERNAL", "XX000": "INTERNAL", "P0001": "INTERNAL",
	} {
		r := a.do(t, a.demo.admin, makeOne, vars{"name": sqlstate})
		wantCodes(t, r, code)
		wantNone(t, r.body, append(strings.Fields(insideWords), sqlstate)...)
		if r.data == nil || r.at(t, "createCustomer") != nil {
			t.Errorf("%s is answered %s, want null", sqlstate, r.body)
		}
		if key, told := "", false; len(r.errors) > 0 {
			key, told = r.errors[0].Extensions["idempotencyKey"].(string)
			if told != (code == "OUTCOME_UNKNOWN") || told && key == "" {
				t.Errorf("%s: the key to ask again with is %q: %s", code, key, r.body)
			}
		}
		if !a.logged(r.header.Get(requestid.Header), sqlstate) {
			t.Errorf("%s is not in the log: %s", sqlstate, fromTheLog)
		}
	}
}

// logged says whether a line of the log holds both words.
func (a *api) logged(id, word string) bool {
	for line := range strings.Lines(a.log.String()) {
		if strings.Contains(line, id) && strings.Contains(line, word) {
			return true
		}
	}
	return false
}

// TestMissingTable: a fault that nobody foresaw is INTERNAL, for a root field and for a nested one,
// which hides no more of the answer than it must.
func TestMissingTable(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.db.Exec(t, `DROP TABLE invoice_lines; DROP TABLE series_counters`)
	r := a.do(t, a.demo.admin, `query ($id: ID!) { customer(id: $id) { name } invoices(first: 1) { nodes { lines { description } } } }`, vars{"id": a.demo.customerID})
	wantCodes(t, r, "INTERNAL")
	wantNone(t, r.body, strings.Fields(insideWords)...)
	if got := r.errors[0].path(); got != "invoices.nodes.0.lines" {
		t.Errorf("the error is at %s, want invoices.nodes.0.lines", got)
	}
	r = a.do(t, a.demo.admin, `mutation ($code: String!) { createInvoiceSeries(input: {code: $code}) { series { id } userErrors { code } } }`, vars{"code": "LATE"})
	wantCodes(t, r, "INTERNAL")
	wantNone(t, r.body, strings.Fields(insideWords)...)
	if !a.logged(r.header.Get(requestid.Header), "series_counters") {
		t.Error("the missing table is not in the log: " + fromTheLog)
	}
}

// TestPanic: a panic in a resolver is INTERNAL to this request and nothing to the next; its stack
// is in the log under the request's id.
func TestPanic(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(_ *testdb.DB, o *graph.Options) {
		o.Resolver = &graph.Resolver{DB: o.Resolver.(*graph.Resolver).DB}
	})
	for _, query := range []string{`{ f: invoices { nodes { id } } }`, `mutation { f: createCustomer(input: {name: "x", currency: "EUR"}) { replayed } }`} {
		r := a.do(t, a.demo.admin, query, nil)
		wantCodes(t, r, "INTERNAL")
		wantNone(t, r.body, append(strings.Fields(insideWords), "nil pointer")...)
		if id := r.header.Get(requestid.Header); !a.logged(id, "nil pointer") || !a.logged(id, "goroutine") {
			t.Error("the panic and its stack are not in the log: " + fromTheLog)
		}
	}
	a.must(t, a.demo.admin, `{ doctor { healthy } }`, nil)
}

// TestClientsRequestId: an id that the client brings stands in the header, in the error and in the
// log; one that is not safe in a log is replaced.
func TestClientsRequestId(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	ask := func(id string) response {
		header := map[string]string{"Content-Type": "application/json", requestid.Header: id}
		return a.send(t, "POST", "", a.demo.admin, header, `{"query": "{ node(id: \"x\") { id } }"}`)
	}
	if got := ask("trace-0123456789").header.Get(requestid.Header); got != "trace-0123456789" || !a.logged(got, "BAD_INPUT") {
		t.Errorf("the answer has the request id %q, want the client's, also in the log", got)
	}
	for _, bad := range []string{"short", "with spaces in it", strings.Repeat("x", 65), `"quoted-0123"`} {
		if got := ask(bad).header.Get(requestid.Header); got == bad {
			t.Errorf("the request id %q was taken over", bad)
		}
	}
}
