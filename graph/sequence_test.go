package graph_test

import (
	"context"
	"strings"
	"testing"

	"countersign/graph"
	"countersign/internal/auth"
	"countersign/internal/testdb"
)

// made asks for a customer with a name, under a response name, perhaps with a directive.
func made(as, name string, directive ...string) string {
	return as + `: createCustomer(input: {name: "` + name + `", currency: "EUR"}) ` + strings.Join(directive, " ") + ` { customer { name } userErrors { code } }` + "\n"
}

// TestMutationsOfOneRequest: after a mutation that failed, those behind it are not run: they answer
// null with NOT_RUN, whatever else is wrong with them, and have no effect; those before it stay.
// User errors, errors of nested fields and mutations left out by a directive stop nothing.
func TestMutationsOfOneRequest(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.db.Before("InsertSeries", func(context.Context) { panic("boom") })
	const series = `s: createInvoiceSeries(input: {code: "S"}) { series { id } userErrors { code } }` + "\n"
	nobody := `u: allocateInvoice(input: {seriesId: "` + absent("ser") + `", customerId: "` + a.demo.customerID +
		`", currency: "EUR", lines: [{description: "x", quantity: 1, unitAmountMinor: 1}]}) { invoice { id } userErrors { code } }` + "\n"
	for _, c := range []struct {
		name, token, mutations string
		failed                 string // the mutations that answer null, each with its code
		made                   string // the customers that exist afterwards
	}{
		{"all run", a.demo.admin, made("a", "all-1") + made("b", "all-2"), "", "all-1 all-2"},
		{"a resolver fails", a.demo.admin, made("a", "res-1") + made("b", " ") + made("c", "res-3") + made("d", "res-4"), "b BAD_INPUT, c NOT_RUN, d NOT_RUN", "res-1"},
		{"the first fails", a.demo.admin, made("a", " ") + made("b", "first-2"), "a BAD_INPUT, b NOT_RUN", ""},
		{"the last fails", a.demo.admin, made("a", "last-1") + made("b", " "), "b BAD_INPUT", "last-1"},
		{"arguments cannot be read", a.demo.admin, made("a", "arg-1") + made("b", `\u0000`) + made("c", "arg-3"), "b BAD_INPUT, c NOT_RUN", "arg-1"},
		{"what is not run is not read", a.demo.admin, made("a", " ") + made("b", `\u0000`) + made("c", "read-3"), "a BAD_INPUT, b NOT_RUN, c NOT_RUN", ""},
		{"the role has no right", a.demo.service, made("a", "role-1") + series + made("c", "role-3"), "s FORBIDDEN, c NOT_RUN", "role-1"},
		{"what is not run has no right either", a.demo.service, made("a", " ") + series, "a BAD_INPUT, s NOT_RUN", ""},
		{"a resolver panics", a.demo.admin, made("a", "panic-1") + series + made("c", "panic-3"), "s INTERNAL, c NOT_RUN", "panic-1"},
		{"a user error", a.demo.admin, made("a", "user-1") + nobody + made("c", "user-3"), "", "user-1 user-3"},
		{"left out by @skip", a.demo.admin, made("a", "skip-1") + made("b", " ", "@skip(if: true)") + made("c", "skip-3"), "", "skip-1 skip-3"},
		{"left out by @include", a.demo.admin, made("a", "incl-1", "@include(if: false)") + made("b", "incl-2"), "", "incl-2"},
		{"__typename between", a.demo.admin, made("a", "type-1") + "__typename\n" + made("c", " ") + "x: __typename\n" + made("d", "type-4"), "c BAD_INPUT, d NOT_RUN", "type-1"},
		{"in a fragment", a.demo.admin, "... on Mutation {" + made("a", "frag-1") + made("b", " ") + "}" + made("c", "frag-3"), "b BAD_INPUT, c NOT_RUN", "frag-1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := a.count(t, "customers", "true")
			r := a.do(t, c.token, "mutation {"+c.mutations+"}", nil)
			var failed []string
			for _, e := range r.errors {
				failed = append(failed, e.path()[:1]+" "+e.Extensions["code"].(string))
				if r.at(t, e.path()[:1]) != nil {
					t.Errorf("%s failed, and yet it answers: %s", e.path(), r.body)
				}
			}
			if got := strings.Join(failed, ", "); got != c.failed {
				t.Errorf("what failed is %q, want %q: %s", got, c.failed, r.body)
			}
			wanted := strings.Fields(c.made)
			if got := a.count(t, "customers", "true") - before; got != len(wanted) {
				t.Errorf("%d customers were made, want %q", got, wanted)
			}
			if got := a.count(t, "customers", "name = ANY($1)", wanted); got != len(wanted) {
				t.Errorf("%d of the customers %q exist", got, wanted)
			}
		})
	}
}

// TestSkippedMutationUsesNoKey: a mutation that a directive leaves out uses up no idempotency key:
// the same key then serves another input.
func TestSkippedMutationUsesNoKey(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	const ask = `mutation ($name: String!, $skip: Boolean!) {
		createCustomer(input: {name: $name, currency: "EUR", idempotencyKey: "once"}) @skip(if: $skip) { customer { name } replayed userErrors { code } }
	}`
	r := a.must(t, a.demo.admin, ask, vars{"name": "One", "skip": true})
	if len(r.data) != 0 || len(r.extensions) != 0 {
		t.Errorf("a skipped mutation answers %s", r.body)
	}
	r = a.must(t, a.demo.admin, ask, vars{"name": "Two", "skip": false})
	if name, replayed := r.at(t, "createCustomer.customer.name"), r.at(t, "createCustomer.replayed"); name != "Two" || replayed != false {
		t.Errorf("the key then makes %v, replayed %v; want Two, made anew", name, replayed)
	}
	if n := a.count(t, "customers", "name IN ('One', 'Two')"); n != 1 {
		t.Errorf("%d customers were made, want Two alone", n)
	}
}

// TestNestedErrorStopsNothing: what a field of a payload cannot answer does not undo the mutation,
// nor stop those behind it (case 42).
func TestNestedErrorStopsNothing(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	r := a.do(t, a.demo.admin, `mutation {
		a: createCustomer(input: {name: "Nested", currency: "EUR"}) { customer { name invoices(first: 0) { nodes { id } } } replayed userErrors { code } }
		b: createCustomer(input: {name: "Behind", currency: "EUR"}) { customer { name } userErrors { code } }
	}`, nil)
	wantCodes(t, r, "BAD_INPUT")
	if r.at(t, "a.replayed") != false || r.at(t, "b.customer.name") != "Behind" {
		t.Errorf("the mutations answer %s", r.body)
	}
	if n := a.count(t, "customers", "name IN ('Nested', 'Behind')"); n != 2 {
		t.Errorf("%d of the two customers exist", n)
	}
}

// TestMutationsCommitOneByOne: while the second mutation of a request is still at work, everybody
// can already read what the first one did.
func TestMutationsCommitOneByOne(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	gate := a.db.Gate(t, "InsertSeries")
	answered := a.doAside(t, a.demo.admin, `mutation {`+made("a", "First")+`b: createInvoiceSeries(input: {code: "SECOND"}) { series { code } userErrors { code } } }`, nil)
	gate.Await(t, 1)
	r := a.must(t, a.demo.admin, `{ customers(last: 1) { nodes { name } } }`, nil)
	if got := r.text(t, "customers.nodes.0.name"); got != "First" {
		t.Errorf("while the second mutation runs the newest customer is %s, want First", got)
	}
	gate.Open()
	if r := <-answered; len(r.errors) > 0 || r.text(t, "b.series.code") != "SECOND" {
		t.Errorf("the request was answered %s", r.body)
	}
}

// TestHangUpBetweenMutations: when the client hangs up, the mutation at work finishes, and the next
// is not begun.
func TestHangUpBetweenMutations(t *testing.T) {
	t.Parallel()
	gone := make(chan (<-chan struct{}), 1)
	a := newAPI(t, func(_ *testdb.DB, o *graph.Options) {
		authenticate := o.Authenticate
		o.Authenticate = func(ctx context.Context, token string) (auth.Caller, error) {
			gone <- ctx.Done()
			return authenticate(ctx, token)
		}
	})
	gate := a.db.Gate(t, "InsertCustomer")
	ctx, hangUp := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.abandon(ctx, t, a.demo.admin, `mutation {`+made("a", "First")+made("b", "Second")+`}`)
	}()
	gate.Await(t, 1)
	hangUp()
	<-ended
	<-<-gone // the server has noticed
	gate.Open()
	testdb.Eventually(t, func() bool { return strings.Contains(a.log.String(), "NOT_RUN") })
	if n := a.count(t, "customers", "name = 'First'"); n != 1 {
		t.Errorf("the mutation at work left %d customers, want 1", n)
	}
	if n := a.count(t, "customers", "name = 'Second'"); n != 0 {
		t.Error("the mutation behind it was run for a client that is gone")
	}
}
