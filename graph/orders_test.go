package graph_test

import (
	"strings"
	"testing"

	"countersign/internal/domain"
	"countersign/internal/payment"
)

const askOrder = `mutation ($i: PlaceOrderInput!) { placeOrder(input: $i) { order { id status customer { id } total { formatted } } replayed
	userErrors { __typename message code path ... on PriceChangedError { currentTotal { amountMinor currency formatted } } } } }`

// askMove asks for one of the moves of an order.
func (a *api) askMove(t testing.TB, token, field string, input vars) response {
	t.Helper()
	return a.do(t, token, `mutation ($i: `+strings.ToUpper(field[:1])+field[1:]+`Input!) { f: `+field+`(input: $i) { order { id status version } replayed
		userErrors { __typename message code path ... on IllegalTransitionError { from to } } } }`, vars{"i": input})
}

// wantUserError fails unless a payload has this one user error and nothing else; it returns the
// error's path in the answer.
func wantUserError(t testing.TB, r response, at, code, path string) string {
	t.Helper()
	if len(r.errors) > 0 || r.at(t, at+".order") != nil || r.at(t, at+".replayed") != false || strings.Join(r.list(t, at+".userErrors", "code"), " ") != code {
		t.Fatalf("answered %s, want %s", r.body, code)
	}
	if got := strings.Join(r.list(t, at+".userErrors.0.path", ""), "."); got != path {
		t.Errorf("%s is about %s, want %s: %s", code, got, path, r.body)
	}
	return at + ".userErrors.0"
}

// TestCustomerBuysForItself: a customer's order is its own, whether it says so or not, and the same
// one under the same key; another customer's id answers like one that names nobody, and nothing is
// placed. Its neighbour's key is another key.
func TestCustomerBuysForItself(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	n := a.demo
	buy := func(token string, customer any) response {
		input := placement(n, 1)
		input["idempotencyKey"] = "the form"
		if input["customerId"] = customer; customer == nil {
			delete(input, "customerId")
		}
		return a.do(t, token, askOrder, vars{"i": input})
	}
	neighbours := buy(n.service, n.neighbourID).text(t, "placeOrder.order.id")
	before := a.rows(t)
	nobody := buy(n.customer, absent("cus"))
	wantUserError(t, nobody, "placeOrder", "NOT_FOUND", "input.customerId")
	for _, id := range []string{n.neighbourID, a.other.customerID} {
		if r := buy(n.customer, id); r.masked() != nobody.masked() {
			t.Errorf("for another customer it is answered %s, for nobody %s", r.body, nobody.body)
		}
	}
	if a.rows(t) != before {
		t.Error("an order for another customer had an effect")
	}
	first := buy(n.customer, nil)
	if first.at(t, "placeOrder.replayed") != false || first.at(t, "placeOrder.order.customer.id") != n.customerID || first.at(t, "placeOrder.order.id") == neighbours {
		t.Errorf("its own order is answered %s", first.body)
	}
	for _, r := range []response{buy(n.customer, n.customerID), buy(n.customer, nil), buy(n.admin, n.customerID)} {
		if r.at(t, "placeOrder.replayed") != true || r.at(t, "placeOrder.order.id") != first.at(t, "placeOrder.order.id") {
			t.Errorf("asked again it is answered %s, want %s replayed", r.body, first.body)
		}
	}
	r := buy(n.service, nil)
	if wantCodes(t, r, "BAD_INPUT"); r.errors[0].path() != "placeOrder.input.customerId" {
		t.Errorf("who is no customer has to say for whom: %s", r.body)
	}
}

// TestCustomerMovesItsOwnOrders: a customer pays again and cancels what is its own; of another
// customer's order it is told what it is told of none, also under the key that moved that order.
func TestCustomerMovesItsOwnOrders(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	n := a.demo
	own, declined := n.orderID, a.order(t, n, n.customerID, payment.SimDeclined, n.productID)
	if r := a.askMove(t, n.customer, "retryPayment", vars{"orderId": declined, "paymentMethod": "sim_declined"}); r.at(t, "f.order.status") != "PENDING" {
		t.Errorf("a second decline is answered %s", r.body)
	}
	if r := a.askMove(t, n.customer, "cancelOrder", vars{"orderId": declined}); r.at(t, "f.order.status") != "CANCELLED" {
		t.Errorf("its cancellation is answered %s", r.body)
	}
	wantUserError(t, a.askMove(t, n.customer, "cancelOrder", vars{"orderId": own}), "f", "ILLEGAL_TRANSITION", "input.orderId")

	moved := a.askMove(t, n.admin, "retryPayment", vars{"orderId": n.neighbourOrderID, "paymentMethod": "sim_declined", "idempotencyKey": "1"})
	if len(moved.list(t, "f.userErrors", "code")) > 0 {
		t.Fatalf("the neighbour's payment is answered %s", moved.body)
	}
	before := a.rows(t)
	for _, field := range []string{"retryPayment", "cancelOrder"} {
		for _, key := range []any{nil, "1"} {
			ask := func(id string) response {
				return a.askMove(t, n.customer, field, vars{"orderId": id, "idempotencyKey": key})
			}
			none := ask(absent("ord"))
			wantUserError(t, none, "f", "NOT_FOUND", "input.orderId")
			for _, id := range []string{n.neighbourOrderID, a.other.orderID} {
				if r := ask(id); r.masked() != none.masked() {
					t.Errorf("%s of another's order is answered %s, of none %s", field, r.body, none.body)
				}
			}
		}
	}
	if a.rows(t) != before {
		t.Error("another's order was moved")
	}
}

// TestRetiredProduct: a product that is not for sale any more is nothing to a customer, wherever it
// asks; its order keeps the name and the price. In a new order it is told so, for it may stand in a
// cart.
func TestRetiredProduct(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	n := a.demo
	const query = `query ($id: ID!, $order: ID!) { product(id: $id) { id } node(id: $id) { id } nodes(ids: [$id, $id]) { id } products { nodes { id } }
		order(id: $order) { items { name unitPrice { formatted } product { id } } } }`
	ask := func(token string) string {
		return a.must(t, token, query, vars{"id": n.productID, "order": n.orderID}).body
	}
	if got := ask(n.customer); strings.Count(got, n.productID) != 6 {
		t.Errorf("while it is for sale a customer reads %s", got)
	}
	a.must(t, n.admin, `mutation ($i: UpdateProductInput!) { updateProduct(input: $i) { product { active } userErrors { code } } }`,
		vars{"i": vars{"productId": n.productID, "version": n.productVersion, "active": false}})
	if got := ask(n.customer); strings.Contains(got, n.productID) || !strings.Contains(got, `[{"name":"Chess set","unitPrice":{"formatted":"€49.50"},"product":null}]`) {
		t.Errorf("a customer reads %s", got)
	}
	if got := ask(n.service); strings.Count(got, n.productID) != 6 {
		t.Errorf("the staff reads %s", got)
	}
	input := placement(n, 1)
	input["idempotencyKey"] = "old cart"
	wantUserError(t, a.do(t, n.customer, askOrder, vars{"i": input}), "placeOrder", "PRODUCT_INACTIVE", "input.items.0.productId")
}

// TestPriceChanged: who was shown another total is told the one of now, and nothing is placed; with
// that total, or without one, the order is placed.
func TestPriceChanged(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	input := placement(a.demo, 3)
	input["idempotencyKey"], input["expectedTotalMinor"] = "form", "14849"
	before := a.rows(t)
	r := a.do(t, a.demo.customer, askOrder, vars{"i": input})
	at := wantUserError(t, r, "placeOrder", "PRICE_CHANGED", "input.expectedTotalMinor")
	for name, want := range map[string]string{
		"__typename": "PriceChangedError", "currentTotal.amountMinor": "14850", "currentTotal.currency": "EUR", "currentTotal.formatted": "€148.50",
	} {
		if got := r.text(t, at+"."+name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if a.rows(t) != before {
		t.Error("an order was placed at another price")
	}
	input["expectedTotalMinor"] = r.at(t, at+".currentTotal.amountMinor")
	if r := a.must(t, a.demo.customer, askOrder, vars{"i": input}); r.at(t, "placeOrder.order.total.formatted") != "€148.50" || r.at(t, "placeOrder.replayed") != false {
		t.Errorf("at the price of now it is answered %s", r.body)
	}
	input["expectedTotalMinor"] = "1" // what was expected is no part of what the key stands for
	if r := a.must(t, a.demo.customer, askOrder, vars{"i": input}); r.at(t, "placeOrder.replayed") != true {
		t.Errorf("asked again it is answered %s", r.body)
	}
}

// TestIllegalTransition: a move that does not begin where the order stands says where it stands and
// where it was to go.
func TestIllegalTransition(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	n := a.demo
	for _, c := range []struct{ field, id, from, to string }{
		{"fulfillOrder", n.neighbourOrderID, "PENDING", "FULFILLED"},
		{"refundOrder", n.neighbourOrderID, "PENDING", "REFUNDED"},
		{"cancelOrder", n.orderID, "PAID", "CANCELLED"},
		{"retryPayment", n.orderID, "PAID", "PAID"},
	} {
		before := a.rows(t)
		r := a.askMove(t, n.admin, c.field, vars{"orderId": c.id})
		at := wantUserError(t, r, "f", "ILLEGAL_TRANSITION", "input.orderId")
		if r.at(t, at+".__typename") != "IllegalTransitionError" || r.at(t, at+".from") != c.from || r.at(t, at+".to") != c.to {
			t.Errorf("%s is answered %s, want from %s to %s", c.field, r.body, c.from, c.to)
		}
		if a.rows(t) != before {
			t.Errorf("%s had an effect", c.field)
		}
	}
}

// TestStaleVersion (case 28): what was decided on another version of the row is refused, be the
// version older by a change or only cut to milliseconds; on the version as it was read it is done.
func TestStaleVersion(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	n := a.demo
	a.db.Exec(t, `UPDATE orders SET updated_at = date_trunc('second', updated_at) + interval '309921 microseconds'`)
	a.db.Exec(t, `UPDATE products SET updated_at = date_trunc('second', updated_at) + interval '309921 microseconds'`)
	version := a.version(t, n.orderID)
	for _, stale := range []string{n.productVersion, strings.Replace(version, ".309921Z", ".309Z", 1), strings.Replace(version, ".309921Z", ".309000Z", 1)} {
		for _, field := range []string{"fulfillOrder", "refundOrder"} {
			wantUserError(t, a.askMove(t, n.admin, field, vars{"orderId": n.orderID, "version": stale}), "f", "STALE_VERSION", "input.version")
		}
		r := a.do(t, n.admin, `mutation ($i: UpdateProductInput!) { updateProduct(input: $i) { order: product { id } replayed userErrors { code path } } }`,
			vars{"i": vars{"productId": n.productID, "version": stale, "name": "x"}})
		wantUserError(t, r, "updateProduct", "STALE_VERSION", "input.version")
	}
	r := a.askMove(t, n.admin, "fulfillOrder", vars{"orderId": n.orderID, "version": version})
	if r.at(t, "f.order.status") != "FULFILLED" || r.text(t, "f.order.version") <= version {
		t.Errorf("on the version that was read it is answered %s", r.body)
	}
	wantUserError(t, a.askMove(t, n.admin, "refundOrder", vars{"orderId": n.orderID, "version": version}), "f", "STALE_VERSION", "input.version")
}

// TestInsufficientStock: the refusal names the first item that asks for the product, as the client
// wrote it, and takes nothing of the others.
func TestInsufficientStock(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	n := a.demo
	stocked := func(sku string, stock int) string {
		return a.must(t, n.admin, `mutation ($i: CreateProductInput!) { createProduct(input: $i) { product { id } userErrors { code } } }`,
			vars{"i": vars{"sku": sku, "name": sku, "unitPriceMinor": 100, "currency": "EUR", "stock": stock}}).text(t, "createProduct.product.id")
	}
	plenty, few := stocked("plenty", 9), stocked("few", 3)
	items := func(quantity int) []vars {
		return []vars{{"productId": plenty, "quantity": 2}, {"productId": n.productID, "quantity": 1}, {"productId": few, "quantity": 2}, {"productId": few, "quantity": quantity}}
	}
	input := vars{"idempotencyKey": "form", "items": items(2)}
	before := a.rows(t)
	wantUserError(t, a.do(t, n.customer, askOrder, vars{"i": input}), "placeOrder", "INSUFFICIENT_STOCK", "input.items.2.productId")
	left := func() string {
		return strings.Join(a.must(t, n.admin, `query ($ids: [ID!]!) { nodes(ids: $ids) { ... on Product { stock } } }`, vars{"ids": []string{plenty, few, n.productID}}).list(t, "nodes", "stock"), " ")
	}
	if got := left(); got != "9 3 <nil>" || a.rows(t) != before {
		t.Errorf("the stock is %s after an order that was refused, %d rows were made", got, a.rows(t)-before)
	}
	input["items"] = items(1) // the key is free still: nothing was placed under it
	if r := a.must(t, n.customer, askOrder, vars{"i": input}); r.at(t, "placeOrder.order.status") != "PAID" {
		t.Errorf("what there is enough of is answered %s", r.body)
	}
	if got := left(); got != "7 0 <nil>" {
		t.Errorf("the stock is %s after the order", got)
	}
}

// TestCase42NestedFaultAfterPlaceOrder: a nested field that fails once the order is committed takes
// nothing of the answer but itself; asked again by its key, the order is there.
func TestCase42NestedFaultAfterPlaceOrder(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.db.Exec(t, `DROP TABLE product_stock`) // read for the nested field alone: this product's stock is not counted
	ask := func(nested string) response {
		input := placement(a.demo, 1)
		input["idempotencyKey"] = "form"
		return a.do(t, a.demo.customer, `mutation ($i: PlaceOrderInput!) { placeOrder(input: $i) { order { id status `+nested+` } replayed userErrors { code } } }`, vars{"i": input})
	}
	first := ask(`items { name product { id stock } }`)
	wantCodes(t, first, "INTERNAL")
	if first.errors[0].path() != "placeOrder.order.items.0.product.stock" || first.at(t, "placeOrder.order.status") != "PAID" ||
		first.at(t, "placeOrder.replayed") != false || first.at(t, "placeOrder.order.items.0.product.id") != a.demo.productID {
		t.Errorf("the order is answered %s", first.body)
	}
	a.db.Exec(t, `DROP TABLE refunds`)
	lists := ask(`refunds { id }`)
	wantCodes(t, lists, "INTERNAL")
	if lists.at(t, "placeOrder.order.id") != first.at(t, "placeOrder.order.id") || lists.at(t, "placeOrder.order.refunds") != nil || lists.at(t, "placeOrder.replayed") != true {
		t.Errorf("with a list that cannot be read it is answered %s", lists.body)
	}
	again := ask("")
	if wantCodes(t, again); again.at(t, "placeOrder.order.id") != first.at(t, "placeOrder.order.id") || again.at(t, "placeOrder.replayed") != true {
		t.Errorf("asked again it is answered %s, want %s replayed", again.body, first.body)
	}
	if n := a.count(t, "orders", "idempotency_key = 'form'"); n != 1 {
		t.Errorf("the key placed %d orders", n)
	}
}

// TestPaymentEvents: a tenant reads what providers report of its own orders, what waits and what
// contradicts itself included; what is about nobody's order it does not read.
func TestPaymentEvents(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	n := a.demo
	euros := func(amount domain.Cents) domain.Money { return domain.Money{AmountMinor: amount, Currency: "EUR"} }
	second := payment.Event{ID: "evt-1", Reference: n.orderID, Fact: domain.Fact{Kind: domain.FactPaid, PaymentID: "second", Amount: euros(4950)}}
	a.receive(t, second)
	a.receive(t, payment.Event{ID: "evt-2", Reference: n.neighbourOrderID, Fact: domain.Fact{Kind: domain.FactRefunded, PaymentID: "early", RefundID: "r", Amount: euros(1)}})
	a.receive(t, payment.Event{ID: "evt-3", Reference: a.other.orderID, Fact: domain.Fact{Kind: domain.FactFailed, PaymentID: "other"}})
	a.receive(t, payment.Event{ID: "evt-4", Reference: absent("ord"), Fact: domain.Fact{Kind: domain.FactFailed, PaymentID: "stray"}})
	second.Fact.Amount = euros(4951)
	a.receive(t, second)
	const query = `{ paymentEvents { nodes { provider eventId kind reference paymentId amount { formatted } processedAt result conflicts } } }`
	r := a.must(t, n.service, query, nil)
	if got := strings.Join(r.list(t, "paymentEvents.nodes", "eventId"), " "); got != "evt-1 evt-2" {
		t.Errorf("the tenant reads %s", got)
	}
	for path, want := range map[string]any{
		"0.result": "REFUND_DUE", "0.reference": n.orderID, "0.kind": "payment.paid", "0.amount.formatted": "€49.50", "0.provider": "simulated",
		"1.result": nil, "1.processedAt": nil, "1.paymentId": "early",
	} {
		if got := r.at(t, "paymentEvents.nodes."+path); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	if first, waits := r.text(t, "paymentEvents.nodes.0.conflicts"), r.text(t, "paymentEvents.nodes.1.conflicts"); first != "1" || waits != "0" {
		t.Errorf("the conflicts are %s and %s", first, waits)
	}
	if r := a.must(t, a.other.admin, query, nil); strings.Join(r.list(t, "paymentEvents.nodes", "eventId"), " ") != "evt-3" || r.at(t, "paymentEvents.nodes.0.amount") != nil {
		t.Errorf("the other tenant reads %s", r.body)
	}
}
