package graph_test

import (
	"fmt"
	"slices"
	"testing"
)

// TestCase04NumericOrder: a series lists its invoices in the order of their numbers, as numbers: 9
// before 10 before 11 where they are not padded, and 999 before the 1000 that outgrows a padding of
// three, which is printed whole. Pages of any size, from either end, keep that order.
func TestCase04NumericOrder(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, c := range []struct {
		code, format string
		next         int64
		want         []string
	}{
		{"A", "{CODE}-{N}", 8, []string{"A-8", "A-9", "A-10", "A-11", "A-12"}},
		{"B", "{CODE}-{N:3}", 997, []string{"B-997", "B-998", "B-999", "B-1000", "B-1001"}},
		{"C", "{N}-{CODE}", 98, []string{"98-C", "99-C", "100-C", "101-C", "102-C"}},
		{"D", "{CODE}{N:2}", 99, []string{"D99", "D100", "D101", "D102", "D103"}},
	} {
		series := a.numbered(t, c.code, c.format, c.next, len(c.want))
		const list = `query ($id: ID!, $first: Int, $after: String, $last: Int, $before: String) { invoiceSeries(id: $id) {
			invoices(first: $first, after: $after, last: $last, before: $before) { nodes { number sequence } edges { node { number } } pageInfo { startCursor endCursor } } } }`
		if got := a.must(t, a.demo.service, list, vars{"id": series}).list(t, "invoiceSeries.invoices.nodes", "number"); !slices.Equal(got, c.want) {
			t.Errorf("%s lists %q, want %q", c.format, got, c.want)
		}
		var forward, backward []string
		after, before := any(nil), any(nil)
		for range c.want {
			r := a.must(t, a.demo.service, list, vars{"id": series, "first": 1, "after": after})
			after, forward = r.at(t, "invoiceSeries.invoices.pageInfo.endCursor"), append(forward, r.text(t, "invoiceSeries.invoices.nodes.0.number"))
			r = a.must(t, a.demo.service, list, vars{"id": series, "last": 1, "before": before})
			before, backward = r.at(t, "invoiceSeries.invoices.pageInfo.startCursor"), append(backward, r.text(t, "invoiceSeries.invoices.edges.0.node.number"))
		}
		slices.Reverse(backward)
		if !slices.Equal(forward, c.want) || !slices.Equal(backward, c.want) {
			t.Errorf("%s, one by one: %q forward and %q backward, want %q", c.format, forward, backward, c.want)
		}
	}
}

// TestNodes: nodes answers each id at its place, null where there is none, the same one as often as
// it is asked; up to 100 ids.
func TestNodes(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	n := a.demo
	const query = `query ($ids: [ID!]!) { nodes(ids: $ids) { __typename id ... on Invoice { customer { id } lines { description } }
		... on Order { customer { id } items { product { id stock } } } ... on Product { sku stock } } }`
	r := a.must(t, n.admin, query, vars{"ids": []string{
		n.neighbourInvoiceID, absent("inv"), n.customerID, a.other.customerID, n.seriesID, n.invoiceID, n.neighbourInvoiceID, absent("ser"),
		n.neighbourOrderID, a.other.orderID, n.retiredID, n.orderID, n.productID, n.neighbourOrderID,
	}})
	want := []string{n.neighbourInvoiceID, "<nil>", n.customerID, "<nil>", n.seriesID, n.invoiceID, n.neighbourInvoiceID, "<nil>",
		n.neighbourOrderID, "<nil>", n.retiredID, n.orderID, n.productID, n.neighbourOrderID}
	if got := r.list(t, "nodes", "id"); !slices.Equal(got, want) {
		t.Errorf("nodes answers %q, want %q", got, want)
	}
	for place, customer := range map[int]string{0: n.neighbourID, 5: n.customerID, 6: n.neighbourID} {
		if got := r.text(t, fmt.Sprintf("nodes.%d.customer.id", place)); got != customer {
			t.Errorf("the invoice at %d is of %s, want %s", place, got, customer)
		}
		if got := r.list(t, fmt.Sprintf("nodes.%d.lines", place), "description"); !slices.Equal(got, []string{"Chess set"}) {
			t.Errorf("the invoice at %d has the lines %q", place, got)
		}
	}
	for place, customer := range map[int]string{8: n.neighbourID, 11: n.customerID, 13: n.neighbourID} {
		at := fmt.Sprintf("nodes.%d.", place)
		if got, product := r.text(t, at+"customer.id"), r.text(t, at+"items.0.product.id"); got != customer || product != n.productID {
			t.Errorf("the order at %d is of %s and holds %s, want %s and %s", place, got, product, customer, n.productID)
		}
	}
	if got := a.must(t, n.admin, query, vars{"ids": []string{}}).list(t, "nodes", "id"); len(got) != 0 {
		t.Errorf("no ids are answered %q", got)
	}
	if got := a.must(t, n.admin, query, vars{"ids": n.invoiceID}).list(t, "nodes", "id"); !slices.Equal(got, []string{n.invoiceID}) {
		t.Errorf("one id in the place of a list is answered %q", got)
	}
	ids := slices.Repeat([]string{n.invoiceID}, 101)
	if got := a.must(t, n.admin, query, vars{"ids": ids[:100]}).list(t, "nodes", "id"); !slices.Equal(got, ids[:100]) {
		t.Errorf("100 ids are answered %d nodes", len(got))
	}
	r = a.do(t, n.admin, query, vars{"ids": ids})
	if wantCodes(t, r, "BAD_INPUT"); len(r.errors) == 1 && r.errors[0].path() != "nodes.ids" {
		t.Errorf("101 ids are refused at %s", r.errors[0].path())
	}
}
