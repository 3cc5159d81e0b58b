package graph_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"countersign/graph"
	"countersign/internal/testdb"
)

// TestNestedPages: the pages that hang on a list's rows are read at once, and each is the page that its
// row has when it is read alone, by whichever window; two windows of one list are two pages.
func TestNestedPages(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(_ *testdb.DB, o *graph.Options) {
		limits := graph.DefaultLimits()
		limits.Cost = 1_000_000 // twenty windows at once
		o.Limits = &limits
	})
	a.manyInvoices(t)
	const page = `invoices%s { edges { cursor node { id } } nodes { id } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } }`
	for _, l := range []struct{ list, one string }{{"customers", "customer"}, {"invoiceSeriesList", "invoiceSeries"}} {
		rows := a.must(t, a.demo.admin, `{ `+l.list+`(first: 100) { nodes { id } } }`, nil).list(t, l.list+".nodes", "id")
		alone := func(i int, window string) response {
			return a.must(t, a.demo.admin, fmt.Sprintf(`{ `+l.one+`(id: %q) { `+page+` } }`, rows[i], window), nil)
		}
		all := make([][]string, len(rows))
		longest := 0
		for i := range rows {
			all[i] = alone(i, "(first: 100)").list(t, l.one+".invoices.edges", "cursor")
			if len(all[i]) > len(all[longest]) {
				longest = i
			}
		}
		if n := len(all[longest]); n < 9 {
			t.Fatalf("the longest list of %s has %d rows", l.list, n)
		}
		cursors := strings.NewReplacer("AFTER", quoted(t, all[longest][3]), "BEFORE", quoted(t, all[longest][len(all[longest])-2]))
		var windows []string
		for _, size := range []string{"first: 1", "first: 2", "last: 2", "last: 100", ""} {
			for _, bounds := range []string{"", "after: AFTER", "before: BEFORE", "after: AFTER, before: BEFORE"} {
				window := strings.TrimSpace(size + " " + cursors.Replace(bounds))
				if window != "" {
					window = "(" + window + ")"
				}
				windows = append(windows, window)
			}
		}
		var aliases strings.Builder
		for i, window := range windows {
			fmt.Fprintf(&aliases, " w%d: "+page, i, window)
		}
		sent := a.db.Sent()
		together := a.must(t, a.demo.admin, `{ `+l.list+`(first: 100) { nodes { `+aliases.String()+` } } }`, nil)
		nested := slices.DeleteFunc(sent(), func(name string) bool { return !strings.HasPrefix(name, "ListInvoicesOf") })
		if len(nested) != len(windows) {
			t.Errorf("%d windows of %d %s take %d statements", len(windows), len(rows), l.list, len(nested))
		}
		for w, window := range windows {
			for i := range rows {
				want := fmt.Sprint(alone(i, window).at(t, l.one+".invoices"))
				if got := fmt.Sprint(together.at(t, fmt.Sprintf("%s.nodes.%d.w%d", l.list, i, w))); got != want {
					t.Errorf("invoices%s of %s %d is %s, alone %s", window, l.list, i, got, want)
				}
			}
		}
	}
	// What is asked wrongly is said of the argument, and the rows are answered.
	r := a.do(t, a.demo.admin, `{ customers(first: 2) { nodes { id invoices(first: 0) { nodes { id } } } } }`, nil)
	wantCodes(t, r, "BAD_INPUT", "BAD_INPUT")
	if got := r.errors[0].path(); !strings.HasSuffix(got, ".invoices.first") || r.at(t, "customers.nodes.0.invoices") != nil {
		t.Errorf("a page of no rows fails at %s: %s", got, r.body)
	}
}
