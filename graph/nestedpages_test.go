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
	generous := func(_ *testdb.DB, o *graph.Options) {
		limits := graph.DefaultLimits()
		limits.Cost = 1_000_000 // twenty windows at once
		o.Limits = &limits
	}
	a := newAPI(t, generous)
	a.manyInvoices(t)
	a.manyOrders(t)
	for i, months := range []int{12, 0, 5} {
		a.monthly(t, a.demo, fmt.Sprint("M", i), months)
	}
	metered := newAPI(t, generous) // usage makes invoices of its own
	metered.manyKeys(t)
	const page = `PAGES%s { edges { cursor node { ID } } nodes { ID } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } }`
	for _, l := range []struct {
		*api
		list, one, pages, id, read string
	}{
		{a, "customers", "customer", "invoices", "id", "ListInvoicesOf"}, {a, "invoiceSeriesList", "invoiceSeries", "invoices", "id", "ListInvoicesOf"},
		{a, "customers", "customer", "orders", "id", "ListOrdersOf"}, {metered, "customers", "customer", "apiKeys", "id", "ListAPIKeysOf"},
		{metered, "customers", "customer", "settlements", "id", "ListSettlementsOf"},
		{a, "invoiceSeriesList", "invoiceSeries", "periods", "id: start", "ListPeriodsOf"}, {a, "invoiceSeriesList", "invoiceSeries", "changes", "id: period", "ListChangesOf"},
	} {
		a, page := l.api, strings.NewReplacer("PAGES", l.pages, "ID", l.id).Replace(page)
		rows := a.must(t, a.demo.admin, `{ `+l.list+`(first: 100) { nodes { id } } }`, nil).list(t, l.list+".nodes", "id")
		alone := func(i int, window string) response {
			return a.must(t, a.demo.admin, fmt.Sprintf(`{ `+l.one+`(id: %q) { `+page+` } }`, rows[i], window), nil)
		}
		all := make([][]string, len(rows))
		longest := 0
		for i := range rows {
			all[i] = alone(i, "(first: 100)").list(t, l.one+"."+l.pages+".edges", "cursor")
			if len(all[i]) > len(all[longest]) {
				longest = i
			}
		}
		if n := len(all[longest]); n < 9 {
			t.Fatalf("the longest list of %s of %s has %d rows", l.pages, l.list, n)
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
		nested := slices.DeleteFunc(sent(), func(name string) bool { return !strings.HasPrefix(name, l.read) })
		if len(nested) != len(windows) {
			t.Errorf("%d windows of the %s of %d %s take %d statements", len(windows), l.pages, len(rows), l.list, len(nested))
		}
		for w, window := range windows {
			for i := range rows {
				want := fmt.Sprint(alone(i, window).at(t, l.one+"."+l.pages))
				if got := fmt.Sprint(together.at(t, fmt.Sprintf("%s.nodes.%d.w%d", l.list, i, w))); got != want {
					t.Errorf("%s%s of %s %d is %s, alone %s", l.pages, window, l.list, i, got, want)
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
