package graph_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestStatementsDoNotGrowWithRows: what a list's rows refer to is read for all of them at once: the
// same statements answer 25 rows and 100, each sent once for a list, and the answer is the same
// whichever way the rows are reached.
func TestStatementsDoNotGrowWithRows(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	ids := a.manyInvoices(t)
	const row = `id customer { id name } series { code } lines { description exactAmount }`
	var want string
	for _, c := range []struct {
		way, query, at, node string
		lists                int // how often the query names a list, or a field of its rows by another name
	}{
		{"nodes", `query ($n: Int) { invoices(first: $n) { nodes { ` + row + ` } } }`, "invoices.nodes", "", 1},
		{"edges", `query ($n: Int) { invoices(first: $n) { edges { node { ` + row + ` } } } }`, "invoices.edges", "node", 1},
		{"edges, backward", `query ($n: Int, $end: String) { invoices(last: $n, before: $end) { edges { node { ` + row + ` } } } }`, "invoices.edges", "node", 1},
		{"nodes and edges", `query ($n: Int) { invoices(first: $n) { nodes { ` + row + ` } edges { node { ` + row + ` } } } }`, "invoices.edges", "node", 2},
		{"edges under two names", `query ($n: Int) { invoices(first: $n) { a: edges { node { ` + row + ` } } b: edges { node { ` + row + ` } } } }`, "invoices.b", "node", 2},
		{"a fragment, under two names", `query ($n: Int) { invoices(first: $n) { edges { node { ...F } } } } fragment F on Invoice { whose: customer { id } ` + row + ` }`, "invoices.edges", "node", 2},
		{"nodes(ids:)", `query ($ids: [ID!]!) { nodes(ids: $ids) { ... on Invoice { ` + row + ` } } }`, "nodes", "", 1},
	} {
		ask := func(n int) (statements []string, answer string) {
			sent := a.db.Sent()
			r := a.must(t, a.demo.admin, c.query, vars{"n": n, "ids": ids[:n]})
			statements = sent()
			slices.Sort(statements)
			for i := range n {
				at := r.at(t, fmt.Sprintf("%s.%d", c.at, i)).(map[string]any)
				if c.node != "" {
					at = at[c.node].(map[string]any)
				}
				delete(at, "whose")
				answer += fmt.Sprintln(at)
			}
			return statements, answer
		}
		few, _ := ask(25)
		many, answer := ask(100)
		if want == "" {
			want = answer
		}
		if answer != want {
			t.Errorf("%s answers\n%s\nnodes answers\n%s", c.way, answer, want)
		}
		if !slices.Equal(few, many) {
			t.Errorf("%s: 25 rows take %d statements, 100 take %d", c.way, len(few), len(many))
		}
		for _, name := range []string{"GetCustomers", "GetSeries", "ListInvoiceLines"} {
			if n := strings.Count(strings.Join(many, " "), name); n < 1 || n > c.lists {
				t.Errorf("%s sends %s %d times", c.way, name, n)
			}
		}
	}
}

// TestFaultOfASharedRead: where the read that a list's rows share fails, each row says so at its own
// place.
func TestFaultOfASharedRead(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.db.Exec(t, `DROP TABLE invoice_series CASCADE`)
	for query, want := range map[string]string{
		`{ invoices { nodes { number series { id } } } }`:          "invoices.nodes.0.series invoices.nodes.1.series",
		`{ invoices { edges { node { number series { id } } } } }`: "invoices.edges.0.node.series invoices.edges.1.node.series",
		`{ nodes(ids: ["` + absent("inv") + `", "` + a.demo.invoiceID + `", "` + a.demo.neighbourInvoiceID + `"]) { ... on Invoice { number series { id } } } }`: "nodes.1.series nodes.2.series",
	} {
		r := a.do(t, a.demo.admin, query, nil)
		wantCodes(t, r, "INTERNAL", "INTERNAL")
		var paths []string
		for _, e := range r.errors {
			paths = append(paths, e.path())
		}
		slices.Sort(paths)
		if got := strings.Join(paths, " "); got != want {
			t.Errorf("%s fails at %s, want %s", query, got, want)
		}
		if !strings.Contains(r.body, `"INV-00001","series":null`) {
			t.Errorf("%s hides the rows: %s", query, r.body)
		}
	}
}
