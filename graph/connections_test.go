package graph_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// connection is a list of the schema: how it is asked, with %s for its arguments, and where its
// answer stands. Each has the rows that fill makes, in the order of the list.
type connection struct{ name, query, at string }

func connections(n *tenant) []connection {
	const page = `%s { edges { cursor node { id } } nodes { id } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } }`
	return []connection{
		{"Query.customers", `{ customers` + page + ` }`, "customers"},
		{"Query.invoices", `{ invoices` + page + ` }`, "invoices"},
		{"Query.invoiceSeriesList", `{ invoiceSeriesList` + page + ` }`, "invoiceSeriesList"},
		{"Query.products", `{ products` + page + ` }`, "products"},
		{"Query.orders", `{ orders` + page + ` }`, "orders"},
		{"Query.ordersToLookAt", `{ ordersToLookAt` + page + ` }`, "ordersToLookAt"},
		{"Query.paymentEvents", `{ paymentEvents` + strings.ReplaceAll(page, "{ id }", "{ id: eventId }") + ` }`, "paymentEvents"},
		{"Customer.invoices", `{ customer(id: "` + n.customerID + `") { invoices` + page + ` } }`, "customer.invoices"},
		{"Customer.orders", `{ customer(id: "` + n.customerID + `") { orders` + page + ` } }`, "customer.orders"},
		{"Customer.apiKeys", `{ customer(id: "` + n.customerID + `") { apiKeys` + page + ` } }`, "customer.apiKeys"},
		{"Customer.settlements", `{ customer(id: "` + n.customerID + `") { settlements` + page + ` } }`, "customer.settlements"},
		{"InvoiceSeries.invoices", `{ invoiceSeries(id: "` + n.seriesID + `") { invoices` + page + ` } }`, "invoiceSeries.invoices"},
		{"Query.seriesLedger", `{ seriesLedger(seriesId: "` + n.seriesID + `")` + strings.ReplaceAll(page, "{ id }", "{ id: number }") + ` }`, "seriesLedger"},
		{"Query.apiKeys", `{ apiKeys` + page + ` }`, "apiKeys"},
		{"Query.settlements", `{ settlements` + page + ` }`, "settlements"},
		{"InvoiceSeries.periods", `{ invoiceSeries(id: "` + n.monthlySeriesID + `") { periods` + strings.ReplaceAll(page, "{ id }", "{ id: start }") + ` } }`, "invoiceSeries.periods"},
		{"InvoiceSeries.changes", `{ invoiceSeries(id: "` + n.monthlySeriesID + `") { changes` + strings.ReplaceAll(page, "{ id }", "{ id: period }") + ` } }`, "invoiceSeries.changes"},
	}
}

// with is the query with arguments, beside those that it has.
func (c connection) with(arguments string) string {
	return strings.Replace(fmt.Sprintf(c.query, arguments), `")(`, `", `, 1)
}

// page is a page of a list.
type page struct {
	ids, cursors   []string
	next, previous bool
	start, end     any
}

func (a *api) page(t *testing.T, c connection, arguments string) (p page) {
	t.Helper()
	if arguments != "" {
		arguments = "(" + arguments + ")"
	}
	r := a.must(t, a.demo.admin, c.with(arguments), nil)
	p.ids, p.cursors = r.list(t, c.at+".nodes", "id"), r.list(t, c.at+".edges", "cursor")
	for i := range p.ids {
		if got := r.text(t, fmt.Sprintf("%s.edges.%d.node.id", c.at, i)); got != p.ids[i] {
			t.Errorf("%s%s: edge %d is %s, node %d is %s", c.name, arguments, i, got, i, p.ids[i])
		}
	}
	info := func(name string) any { return r.at(t, c.at+".pageInfo."+name) }
	p.next, p.previous, p.start, p.end = info("hasNextPage") == true, info("hasPreviousPage") == true, info("startCursor"), info("endCursor")
	if n := len(p.cursors); n != len(p.ids) || n == 0 && (p.start != nil || p.end != nil) || n > 0 && (p.start != p.cursors[0] || p.end != p.cursors[n-1]) {
		t.Errorf("%s%s: the page's cursors are %v to %v: %s", c.name, arguments, p.start, p.end, r.body)
	}
	return p
}

// walk visits a list page by page, from its beginning or from its end, and returns its rows as it
// met them. Only the page it starts from may say that nothing lies behind the walker.
func (a *api) walk(t *testing.T, c connection, size int, backward bool) (seen []string) {
	t.Helper()
	way, on := "first", "after"
	if backward {
		way, on = "last", "before"
	}
	for arguments, more := fmt.Sprintf("%s: %d", way, size), true; more; {
		p := a.page(t, c, arguments)
		ahead, behind, cursor := p.next, p.previous, p.end
		if backward {
			ahead, behind, cursor = p.previous, p.next, p.start
			slices.Reverse(p.ids)
		}
		if behind != (len(seen) > 0) {
			t.Errorf("%s(%s): hasNextPage %v, hasPreviousPage %v", c.name, arguments, p.next, p.previous)
		}
		if seen = append(seen, p.ids...); len(p.ids) == 0 || len(seen) > 1000 {
			t.Fatalf("%s(%s): the walk does not end", c.name, arguments)
		}
		arguments, more = fmt.Sprintf("%s: %d, %s: %q", way, size, on, cursor), ahead
	}
	return seen
}

// TestPagesVisitEachRowOnce: walking a list of 60 rows page by page, forward and backward, visits
// each row once, in the order of the list, and each page says truly whether rows follow and precede.
func TestPagesVisitEachRowOnce(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.fill(t, a.demo, 60)
	for _, c := range connections(a.demo) {
		all := a.page(t, c, "first: 100").ids
		if len(all) < 60 || len(slices.Compact(slices.Sorted(slices.Values(all)))) != len(all) {
			t.Errorf("%s has %d rows, want at least 60, each once", c.name, len(all))
		}
		if !slices.IsSorted(all) { // ids are made in order, and so are these numbers
			t.Errorf("%s is not in order", c.name)
		}
		for _, size := range []int{7, 20, 59, 60, 61} {
			forward, backward := a.walk(t, c, size, false), a.walk(t, c, size, true)
			slices.Reverse(backward)
			if !slices.Equal(forward, all) || !slices.Equal(backward, all) {
				t.Errorf("%s by %d: forward visits %d rows, backward %d, of %d, or in another order", c.name, size, len(forward), len(backward), len(all))
			}
		}
	}
}

// TestWindows: after and before bound the range, first takes its beginning and last its end; 25 rows
// where neither is given.
func TestWindows(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.fill(t, a.demo, 30)
	for _, c := range connections(a.demo) {
		all := a.page(t, c, "first: 100")
		n := len(all.ids)
		at := func(i int) string { return all.cursors[i] }
		for _, w := range []struct {
			arguments      string
			from, to       int
			next, previous bool
		}{
			{"", 0, 25, true, false},
			{"first: null, last: null, after: null, before: null", 0, 25, true, false},
			{"first: 3", 0, 3, true, false},
			{"last: 3", n - 3, n, false, true},
			{"first: 100", 0, n, false, false}, {"last: 100", 0, n, false, false},
			{fmt.Sprintf("first: 2, after: %q", at(4)), 5, 7, true, true},
			{fmt.Sprintf("last: 2, before: %q", at(4)), 2, 4, true, true},
			{fmt.Sprintf("first: 2, after: %q, before: %q", at(4), at(10)), 5, 7, true, true},
			{fmt.Sprintf("last: 2, after: %q, before: %q", at(4), at(10)), 8, 10, true, true},
			{fmt.Sprintf("first: 9, after: %q, before: %q", at(4), at(10)), 5, 10, true, true},
			{fmt.Sprintf("after: %q", at(n-1)), n, n, false, true},
			{fmt.Sprintf("last: 5, before: %q", at(0)), 0, 0, true, false},
			{fmt.Sprintf("first: 5, after: %q, before: %q", at(4), at(5)), 5, 5, true, true},
			{fmt.Sprintf("first: 5, after: %q, before: %q", at(9), at(3)), 5, 5, true, true},
		} {
			p := a.page(t, c, w.arguments)
			if !slices.Equal(p.ids, all.ids[w.from:w.to]) {
				t.Errorf("%s(%s) has %d rows, want the rows %d to %d", c.name, w.arguments, len(p.ids), w.from, w.to)
			}
			if p.next != w.next || p.previous != w.previous {
				t.Errorf("%s(%s): hasNextPage %v, hasPreviousPage %v, want %v and %v", c.name, w.arguments, p.next, p.previous, w.next, w.previous)
			}
		}
	}
}

// TestBadWindows: a size is 1 to 100, first excludes last, and a cursor is of its own list; each
// fault names its argument.
func TestBadWindows(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.fill(t, a.demo, 1) // each has a row
	lists := connections(a.demo)
	for i, c := range lists {
		own := a.page(t, c, "first: 1").cursors[0]
		other := lists[0] // a customer's lists page like the lists of all
		if i == 0 {
			other = lists[1]
		}
		foreign := a.page(t, other, "first: 1").cursors[0]
		decoded, err := base64.RawURLEncoding.DecodeString(own)
		if err != nil {
			t.Fatal(err)
		}
		_, key, _ := strings.Cut(string(decoded), ":")
		nameless := base64.RawURLEncoding.EncodeToString([]byte(key))
		for _, w := range []struct{ arguments, path string }{
			{fmt.Sprintf("after: %q", nameless), "after"},
			{"first: 0", "first"}, {"first: -1", "first"}, {"first: 101", "first"}, {"last: 0", "last"}, {"last: 101", "last"}, {"last: 2147483647", "last"},
			{"first: 1, last: 1", "last"}, {`after: ""`, "after"}, {`before: ""`, "before"}, {`after: "nonsense!"`, "after"},
			{fmt.Sprintf("after: %q", foreign), "after"}, {fmt.Sprintf("last: 1, before: %q", foreign), "before"},
			{fmt.Sprintf("after: %q", own[:len(own)-2]), "after"}, {fmt.Sprintf("after: %q", own+"AAAA"), "after"}, {fmt.Sprintf("after: %q", own+"="), "after"},
			{fmt.Sprintf("after: %q", strings.ToLower(own)), "after"},
		} {
			r := a.do(t, a.demo.admin, c.with("("+w.arguments+")"), nil)
			if wantCodes(t, r, "BAD_INPUT"); len(r.errors) == 1 && r.errors[0].path() != c.at+"."+w.path {
				t.Errorf("%s(%s) is refused at %s, want %s", c.name, w.arguments, r.errors[0].path(), w.path)
			}
		}
	}
}

// TestForgedEventCursors: a cursor of the inbox, which holds text, is taken as it was written and no
// other way.
func TestForgedEventCursors(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	const at = `"ReceivedAt":"2026-01-01T00:00:00Z"`
	for key, code := range map[string]string{
		`{` + at + `,"Provider":"simulated","EventID":"x"}`:              "",
		`{` + at + `,"Provider":"simulated","EventID":"x\u0000"}`:        "BAD_INPUT",
		`{` + at + `,"Provider":"\u0000","EventID":"x"}`:                 "BAD_INPUT",
		`{` + at + `,"Provider":"simulated","EventID":"\ud800"}`:         "BAD_INPUT",
		`{` + at + `,"Provider":"simulated","EventID":"` + "\xff" + `"}`: "BAD_INPUT",
		`{` + at + `,"Provider":"simulated","EventID":""}`:               "BAD_INPUT",
		`{` + at + `,"Provider":"simulated","EventID":"x","z":1}`:        "BAD_INPUT",
		`{` + at + `,"provider":"simulated","EventID":"x"}`:              "BAD_INPUT",
		`{"EventID":"x"}`: "BAD_INPUT", `[]`: "BAD_INPUT", `null`: "BAD_INPUT",
	} {
		r := a.do(t, a.demo.admin, fmt.Sprintf(`{ paymentEvents(after: %q) { nodes { eventId } } }`, base64.RawURLEncoding.EncodeToString([]byte("event:"+key))), nil)
		wantCodes(t, r, strings.Fields(code)...)
	}
}
