package graph_test

import (
	"strings"
	"testing"

	"countersign/graph"
	"countersign/internal/testdb"
)

// TestSchemaIsNotForEverybody: without a token only __typename is answered; where exploring is
// allowed the schema is, too, and never more than that.
func TestSchemaIsNotForEverybody(t *testing.T) {
	t.Parallel()
	closed := newAPI(t)
	open := newAPI(t, func(_ *testdb.DB, o *graph.Options) { o.Explore = true })
	for query, explorable := range map[string]bool{
		`{ __typename }`: true, `query q { ...F } fragment F on Query { __typename }`: true, `mutation { __typename }`: true,
		`{ __schema { types { name } } }`: false, `{ __type(name: "Invoice") { name } }`: false, `{ a: __typename b: __schema { types { name } } }`: false,
		`{ ... { ... on Query { __schema { types { name } } } } }`: false, `query q { ...F } fragment F on Query { x: __type(name: "Invoice") { name } }`: false,
	} {
		if r := closed.do(t, "", query, nil); (r.status == 200) != explorable {
			t.Errorf("in production nobody asks %s and is answered %d %s", query, r.status, r.body)
		}
		if r := open.do(t, "", query, nil); r.status != 200 || len(r.errors) > 0 {
			t.Errorf("where exploring is allowed nobody asks %s and is answered %d %s", query, r.status, r.body)
		}
	}
	for _, query := range []string{`{ __typename customers { nodes { id } } }`, `{ __schema { types { name } } ... { customers { nodes { id } } } }`, `{ doctor { __typename } }`} {
		if r := open.do(t, "", query, nil); r.status != 401 || r.data != nil {
			t.Errorf("nobody asks %s and is answered %d %s", query, r.status, r.body)
		}
	}
	closed.must(t, closed.demo.customer, `{ __schema { types { name } } }`, nil)
}

// TestNoSuggestions: in production a misspelt name is not answered with the names near it, which
// would spell out the schema bit by bit. Where exploring is allowed it is: the test can fail.
func TestNoSuggestions(t *testing.T) {
	t.Parallel()
	closed := newAPI(t)
	open := newAPI(t, func(_ *testdb.DB, o *graph.Options) { o.Explore = true })
	for _, query := range []string{
		`{ customer(id: "x") { nam } }`, `{ customerz { nodes { id } } }`, `{ customer(idd: "x") { name } }`, `{ customer(id: "x") { ... on Custome { name } } }`,
		`query ($v: InvoiceFiltr) { invoices(filter: $v) { nodes { id } } }`, `{ invoices(filter: {statu: PENDING}) { nodes { id } } }`,
		`{ invoices(filter: {status: PENDIN}) { nodes { id } } }`, `{ invoices(filter: {status: "PENDIN"}) { nodes { id } } }`, `{ invoices @skp(if: true) { nodes { id } } }`,
		`mutation { createCustomer(input: {nam: "x", name: "x", currency: "EUR"}) { replayed } }`, `{ customer }`, `{ node(id: "x") { name } }`,
		`fragment F on Invoise { id } { invoices { nodes { ...F } } }`, `{ invoices { nodes { ...Fragmen } } } fragment Fragment on Invoice { id }`,
	} {
		for _, token := range []string{"", closed.demo.admin} {
			r := closed.do(t, token, query, nil)
			if len(r.errors) == 0 {
				t.Errorf("%s is answered %s", query, r.body)
			}
			wantNone(t, r.body, "did you mean")
		}
	}
	for _, query := range []string{`{ customer(id: "x") { nam } }`, `{ customer(idd: "x") { name } }`, `{ invoices(filter: {statu: PENDING}) { nodes { id } } }`} {
		if r := open.do(t, "", query, nil); !strings.Contains(r.body, "Did you mean") {
			t.Errorf("where exploring is allowed %s is answered %s", query, r.body)
		}
	}
}
