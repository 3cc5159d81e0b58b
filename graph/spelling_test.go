package graph_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// TestWrongKindOfId: an id of another kind is refused with the kind that was expected, in every
// argument that takes one.
func TestWrongKindOfId(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, c := range []struct{ query, id, path, kinds string }{
		{`query ($id: ID!) { invoice(id: $id) { id } }`, a.demo.customerID, "invoice.id", "inv_"},
		{`query ($id: ID!) { customer(id: $id) { id } }`, a.demo.invoiceID, "customer.id", "cus_"},
		{`query ($id: ID!) { invoiceSeries(id: $id) { id } }`, a.demo.invoiceID, "invoiceSeries.id", "ser_"},
		{`query ($id: ID) { invoices(filter: {customerId: $id}) { nodes { id } } }`, a.demo.invoiceID, "invoices.filter.customerId", "cus_"},
		{`query ($id: ID!) { order(id: $id) { id } }`, a.demo.productID, "order.id", "ord_"},
		{`query ($id: ID!) { product(id: $id) { id } }`, a.demo.orderID, "product.id", "prd_"},
		{`query ($id: ID) { orders(filter: {customerId: $id}) { nodes { id } } }`, a.demo.orderID, "orders.filter.customerId", "cus_"},
		{`mutation ($id: ID!) { cancelOrder(input: {orderId: $id}) { replayed } }`, a.demo.invoiceID, "cancelOrder.input.orderId", "ord_"},
		{`mutation ($id: ID!) { placeOrder(input: {idempotencyKey: "k", items: [{productId: $id, quantity: 1}]}) { replayed } }`, a.demo.orderID, "placeOrder.input.items.0.productId", "prd_"},
		{`query ($id: ID!) { node(id: $id) { id } }`, "ten_" + a.demo.invoiceID[4:], "node.id", "cus_ inv_ ord_ prd_ ser_ tok_"},
		{`query ($id: ID!) { nodes(ids: [$id]) { id } }`, "nothing", "nodes.ids", "cus_ inv_ ord_ prd_ ser_"},
		{`query ($id: ID!) { node(id: $id) { id } }`, strings.ToUpper(a.demo.invoiceID), "node.id", "cus_ inv_ ord_ prd_ ser_"},
		{`query ($id: ID!) { nodes(ids: [$id]) { id } }`, "inv_8zzzzzzzzzzzzzzzzzzzzzzzzz", "nodes.ids", "inv_"},
	} {
		r := a.do(t, a.demo.admin, c.query, vars{"id": c.id})
		wantCodes(t, r, "BAD_INPUT")
		if len(r.errors) == 0 {
			continue
		}
		if got := r.errors[0].path(); got != c.path {
			t.Errorf("%s with %s is refused at %s, want %s", c.query, c.id, got, c.path)
		}
		for _, kind := range strings.Fields(c.kinds) {
			if !strings.Contains(r.errors[0].Message, kind) {
				t.Errorf("%s with %s: %q does not name %s", c.query, c.id, r.errors[0].Message, kind)
			}
		}
	}
}

// TestBooleanAndEnumAreStrict: "true" and 1 are no Boolean, and an enum's value has one spelling.
// gqlparser takes "pending" for PENDING in a variable; the list would then silently be empty.
func TestBooleanAndEnumAreStrict(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, c := range []struct{ typ, use, value, code string }{
		{"Boolean!", `{ invoices { nodes @include(if: $v) { id } pageInfo { hasNextPage } } }`, `true`, ""},
		{"Boolean!", `{ invoices { nodes @include(if: $v) { id } } }`, `"true"`, "BAD_INPUT"},
		{"Boolean!", `{ invoices { nodes @include(if: $v) { id } } }`, `1`, "BAD_INPUT"},
		{"Boolean!", `{ invoices { nodes @include(if: $v) { id } } }`, `null`, "BAD_INPUT"},
		{"InvoiceStatus", `{ invoices(filter: {status: $v}) { nodes { id } } }`, `"PENDING"`, ""},
		{"InvoiceStatus", `{ invoices(filter: {status: $v}) { nodes { id } } }`, `"pending"`, "BAD_INPUT"},
		{"InvoiceStatus", `{ invoices(filter: {status: $v}) { nodes { id } } }`, `0`, "BAD_INPUT"},
		{"InvoiceFilter", `{ invoices(filter: $v) { nodes { id } } }`, `{"status": "PENDING"}`, ""},
		{"InvoiceFilter", `{ invoices(filter: $v) { nodes { id } } }`, `{"status": "Pending"}`, "BAD_INPUT"},
		{"InvoiceFilter", `{ invoices(filter: $v) { nodes { id } } }`, `{"status": [null]}`, "BAD_INPUT"},
		{"InvoiceFilter", `{ invoices(filter: $v) { nodes { id } } }`, `{"status": true}`, "BAD_INPUT"},
		{"InvoiceFilter", `{ invoices(filter: $v) { nodes { id } } }`, `{"state": "PENDING"}`, "BAD_INPUT"},
		{"Int", `{ invoices(first: $v) { nodes { id } } }`, `-0`, "BAD_INPUT"},
	} {
		r := a.do(t, a.demo.admin, `query ($v: `+c.typ+`) `+c.use, vars{"v": json.RawMessage(c.value)})
		if wantCodes(t, r, strings.Fields(c.code)...); c.code == "" && len(r.list(t, "invoices.nodes", "id")) != 2 {
			t.Errorf("%s %s finds %s, want both invoices", c.typ, c.value, r.body)
		}
	}
	for _, literal := range []string{`{ invoices @skip(if: "true") { nodes { id } } }`, `{ invoices(filter: {status: "PENDING"}) { nodes { id } } }`, `{ invoices(filter: {status: pending}) { nodes { id } } }`} {
		wantCodes(t, a.do(t, a.demo.admin, literal, nil), "BAD_INPUT")
	}
}

// TestTimesHaveSixDigits: every DateTime and every version is UTC with exactly six fractional
// digits, also at a full second, so that clients can compare them as text.
func TestTimesHaveSixDigits(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.db.Exec(t, `UPDATE customers SET created_at = '2026-03-01 01:30:00+02', updated_at = '2026-03-01 00:00:00.5+00'`)
	r := a.must(t, a.demo.admin, `query ($c: ID!, $i: ID!) { customer(id: $c) { createdAt version } invoice(id: $i) { createdAt version } }`,
		vars{"c": a.demo.customerID, "i": a.demo.invoiceID})
	for path, want := range map[string]string{
		"customer.createdAt": `2026-02-28T23:30:00\.000000Z`, "customer.version": `2026-03-01T00:00:00\.500000Z`,
		"invoice.createdAt": `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z`, "invoice.version": `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z`,
	} {
		if got := r.text(t, path); !regexp.MustCompile(`^` + want + `$`).MatchString(got) {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
}
