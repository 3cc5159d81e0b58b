package graph_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"
)

// idQueries ask with an id of one of the kinds listed. The keys are the arguments and input fields of the schema that take an
// id: one that is missing here fails the test.
var idQueries = map[string]struct{ kinds, query string }{
	"Query.node.id":               {"inv cus ser ord prd key set tok", `{ node(id: "<id>") { __typename id } }`},
	"Query.nodes.ids":             {"inv cus ser ord prd key set tok", `{ nodes(ids: ["<customer>", "<id>", "<customer>"]) { __typename id } }`},
	"Query.invoice.id":            {"inv", `{ invoice(id: "<id>") { id number customer { name } lines { description } } }`},
	"Query.customer.id":           {"cus", `{ customer(id: "<id>") { id name invoices { nodes { number } } } }`},
	"Query.invoiceSeries.id":      {"ser", `{ invoiceSeries(id: "<id>") { id code invoices { nodes { number } } } }`},
	"Query.seriesAudit.seriesId":  {"ser", `{ seriesAudit(seriesId: "<id>") { clean last issued } }`},
	"Query.seriesLedger.seriesId": {"ser", `{ seriesLedger(seriesId: "<id>") { nodes { number invoice { id } } edges { cursor } pageInfo { hasNextPage startCursor } } }`},
	"ImportNumbersInput.seriesId": {"ser", `mutation { importNumbers(input: {seriesId: "<id>", numbers: [{number: 1000}], reason: "x"})
		{ change { nextNumber gapCount audit { last } } replayed userErrors { message code path } } }`},
	"ResyncSeriesInput.seriesId": {"ser", `mutation { resyncSeries(input: {seriesId: "<id>", reason: "x"})
		{ change { nextNumber audit { last } } replayed userErrors { message code path } } }`},
	"Query.product.id":         {"prd", `{ product(id: "<id>") { id sku name stock active } }`},
	"Query.order.id":           {"ord", `{ order(id: "<id>") { id status customer { name } items { name product { id } } payments { id } history { event } } }`},
	"OrderFilter.customerId":   {"cus", `{ orders(filter: {customerId: "<id>"}) { nodes { id } edges { cursor } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }`},
	"InvoiceFilter.customerId": {"cus", `{ invoices(filter: {customerId: "<id>"}) { nodes { id } edges { cursor } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }`},
	"AllocateInvoiceInput.seriesId": {"ser", `mutation { allocateInvoice(input: {seriesId: "<id>", customerId: "<customer>", currency: "EUR",
		lines: [{description: "x", quantity: 1, unitAmountMinor: 1}]}) { invoice { id } replayed userErrors { message code path } } }`},
	"AllocateInvoiceInput.customerId": {"cus", `mutation { allocateInvoice(input: {seriesId: "<series>", customerId: "<id>", currency: "EUR",
		lines: [{description: "x", quantity: 1, unitAmountMinor: 1}]}) { invoice { id } replayed userErrors { message code path } } }`},
	"PlaceOrderInput.customerId": {"cus", `mutation { placeOrder(input: {idempotencyKey: "visible", customerId: "<id>", items: [{productId: "<product>", quantity: 1}]})
		{ order { id } replayed userErrors { message code path } } }`},
	"OrderItemInput.productId": {"prd", `mutation { placeOrder(input: {idempotencyKey: "visible", customerId: "<customer>", items: [{productId: "<id>", quantity: 1}]})
		{ order { id } replayed userErrors { message code path } } }`},
	"UpdateProductInput.productId": {"prd", `mutation { updateProduct(input: {productId: "<id>", version: "2026-01-01T00:00:00.000000Z", name: "x"})
		{ product { id } replayed userErrors { message code path } } }`},
	"FulfillOrderInput.orderId": {"ord", `mutation { fulfillOrder(input: {orderId: "<id>"}) { order { id } replayed userErrors { __typename message code path } } }`},
	"CancelOrderInput.orderId":  {"ord", `mutation { cancelOrder(input: {orderId: "<id>"}) { order { id } replayed userErrors { __typename message code path } } }`},
	"RefundOrderInput.orderId":  {"ord", `mutation { refundOrder(input: {orderId: "<id>"}) { order { id } replayed userErrors { __typename message code path } } }`},
	"ReturnPaymentInput.orderId": {"ord", `mutation { returnPayment(input: {orderId: "<id>", providerPaymentId: "` + secondPayment + `"})
		{ order { id } replayed userErrors { message code path } } }`},
	"SettleRefundInput.refundId":       {"ref", `mutation { settleRefund(input: {refundId: "<id>", note: "x"}) { order { id } replayed userErrors { message code path } } }`},
	"ClearAttentionInput.orderId":      {"ord", `mutation { clearAttention(input: {orderId: "<id>", note: "x"}) { order { id } replayed userErrors { message code path } } }`},
	"Query.apiKey.id":                  {"key", `{ apiKey(id: "<id>") { id name customer { name } settlements { id } } }`},
	"Query.settlement.id":              {"set", `{ settlement(id: "<id>") { id outcome apiKey { id } receipt { result } } }`},
	"ApiKeyFilter.customerId":          {"cus", `{ apiKeys(filter: {customerId: "<id>"}) { nodes { id } edges { cursor } pageInfo { hasNextPage startCursor } } }`},
	"UsageSettlementFilter.customerId": {"cus", `{ settlements(filter: {customerId: "<id>"}) { nodes { id } edges { cursor } pageInfo { hasNextPage startCursor } } }`},
	"UsageSettlementFilter.apiKeyId":   {"key", `{ settlements(filter: {apiKeyId: "<id>"}) { nodes { id } edges { cursor } pageInfo { hasNextPage startCursor } } }`},
	"CreateApiKeyInput.customerId": {"cus", `mutation { createApiKey(input: {customerId: "<id>", name: "x", unitPrice: "1"})
		{ apiKey { id } secret replayed userErrors { message code path } } }`},
	"RevokeApiKeyInput.apiKeyId": {"key", `mutation { revokeApiKey(input: {apiKeyId: "<id>"}) { apiKey { id } settlement { id } settlements { id } userErrors { message code path } } }`},
	"UsageEventInput.apiKeyId": {"key", `mutation { recordUsage(input: {events: [{id: "x", apiKeyId: "<id>", quantity: 1, occurredAt: "2026-01-01T00:00:00Z"}]})
		{ accepted duplicates userErrors { message code path } } }`},
	"GrantBillingExemptionInput.customerId": {"cus", `mutation { grantBillingExemption(input: {customerId: "<id>", reason: "x"})
		{ exemption { id } replayed userErrors { message code path } } }`},
	"RemoveBillingExemptionInput.customerId": {"cus", `mutation { removeBillingExemption(input: {customerId: "<id>"}) { customer { id } replayed userErrors { message code path } } }`},
	"RecordInvoicePaymentInput.invoiceId": {"inv", `mutation { recordInvoicePayment(input: {invoiceId: "<id>", amountMinor: 1, reference: "x"})
		{ invoice { id } replayed userErrors { __typename message code path } } }`},
	"WaiveInvoiceInput.invoiceId": {"inv", `mutation { waiveInvoice(input: {invoiceId: "<id>", version: "2026-01-01T00:00:00.000000Z", reason: "x"})
		{ invoice { id } replayed userErrors { __typename message code path } } }`},
	"VoidInvoiceInput.invoiceId": {"inv", `mutation { voidInvoice(input: {invoiceId: "<id>", reason: "x"}) { invoice { id } replayed userErrors { __typename message code path } } }`},
	"Query.accessToken.id":       {"tok", `{ accessToken(id: "<id>") { id name role customer { name } hint history { event } } }`},
	"CreateAccessTokenInput.customerId": {"cus", `mutation { createAccessToken(input: {role: CUSTOMER, customerId: "<id>", name: "x"})
		{ accessToken { name } secret replayed userErrors { message code path } } }`},
	"RotateAccessTokenInput.tokenId": {"tok", `mutation { rotateAccessToken(input: {tokenId: "<id>"}) { accessToken { id } secret replayed userErrors { message code path } } }`},
	"RevokeAccessTokenInput.tokenId": {"tok", `mutation { revokeAccessToken(input: {tokenId: "<id>"}) { accessToken { id } replayed userErrors { message code path } } }`},
	"RetryPaymentInput.orderId":      {"ord", `mutation { retryPayment(input: {orderId: "<id>"}) { order { id } replayed userErrors { __typename message code path } } }`},
	"VoidInvoiceInput.replacedBy": {"inv", `mutation { voidInvoice(input: {invoiceId: "<invoice>", version: "2026-01-01T00:00:00.000000Z", reason: "x", replacedBy: "<id>"})
		{ invoice { id } replayed userErrors { __typename message code path } } }`},
	"CreateDraftInvoiceInput.customerId": {"cus", `mutation { createDraftInvoice(input: {customerId: "<id>", currency: "EUR",
		lines: [{description: "x", quantity: 1, unitAmountMinor: 1}]}) { invoice { id } replayed userErrors { message code path } } }`},
	"UpdateDraftInvoiceInput.invoiceId": {"inv", `mutation { updateDraftInvoice(input: {invoiceId: "<id>", version: "2026-01-01T00:00:00.000000Z",
		lines: [{description: "x", quantity: 1, unitAmountMinor: 1}]}) { invoice { id } replayed userErrors { __typename message code path } } }`},
	"DeleteDraftInvoiceInput.invoiceId": {"inv", `mutation { deleteDraftInvoice(input: {invoiceId: "<id>"}) { invoice { id } replayed userErrors { __typename message code path } } }`},
	"FinalizeInvoiceInput.invoiceId":    {"inv", `mutation { finalizeInvoice(input: {invoiceId: "<id>"}) { invoice { id } replayed userErrors { __typename message code path } } }`},
	"FinalizeInvoiceInput.seriesId":     {"ser", `mutation { finalizeInvoice(input: {invoiceId: "<draft>", seriesId: "<id>"}) { invoice { id } replayed userErrors { message code path } } }`},
	"IssueCreditNoteInput.invoiceId": {"inv", `mutation { issueCreditNote(input: {invoiceId: "<id>", reason: "x", amountMinor: 1})
		{ creditNote { id } replayed userErrors { __typename message code path } } }`},
	"IssueCreditNoteInput.seriesId": {"ser", `mutation { issueCreditNote(input: {invoiceId: "<invoice>", seriesId: "<id>", reason: "x", amountMinor: 1})
		{ creditNote { id } replayed userErrors { message code path } } }`},
	"UpdateCustomerInput.customerId": {"cus", `mutation { updateCustomer(input: {customerId: "<id>", version: "2026-01-01T00:00:00.000000Z", name: "x"})
		{ customer { id } replayed userErrors { message code path } } }`},
}

// told are the arguments where a customer is told that what it asks for is not for sale any more:
// it stood in its cart.
var told = []string{"OrderItemInput.productId"}

// askWith asks a query of idQueries with an id, beside a customer and a series of the tenant.
func (a *api) askWith(t testing.TB, n *tenant, role, query, id string) response {
	t.Helper()
	return a.do(t, n.token(role), strings.NewReplacer("<id>", id, "<customer>", n.customerID, "<series>", n.seriesID, "<product>", n.productID,
		"<invoice>", n.invoiceID, "<draft>", n.draftID).Replace(query), nil)
}

// ids are the tenant's, by kind: what the customer's token may know, and what it may not.
func (n *tenant) ids(kind string) (own, hidden string) {
	switch kind {
	case "inv":
		return n.invoiceID, n.neighbourInvoiceID
	case "cus":
		return n.customerID, n.neighbourID
	case "prd":
		return n.productID, n.retiredID
	case "ord":
		return n.orderID, n.neighbourOrderID
	case "ref":
		return n.refundID, n.refundID
	case "key":
		return n.keyID, n.neighbourKeyID
	case "tok":
		return n.tokenID, n.tokenID
	case "set":
		return n.settlementID, n.neighbourSettlementID
	}
	return n.seriesID, n.seriesID
}

// TestEveryIdArgumentIsTested walks the schema for what takes an id.
func TestEveryIdArgumentIsTested(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, def := range schema.Types {
		for _, field := range fields(def) {
			if def.Kind == ast.InputObject && field.Type.Name() == "ID" {
				found[def.Name+"."+field.Name] = true
			}
			for _, argument := range field.Arguments {
				if argument.Type.Name() == "ID" {
					found[def.Name+"."+field.Name+"."+argument.Name] = true
				}
			}
		}
	}
	for name := range found {
		if _, tested := idQueries[name]; !tested {
			t.Errorf("%s takes an id, and no test asks it with a foreign one", name)
		}
	}
	for name := range idQueries {
		if !found[name] {
			t.Errorf("the schema has no %s that takes an id", name)
		}
	}
}

// TestForeignIdsAnswerLikeAbsentOnes: to every role, in every argument, an id of another tenant
// gets byte for byte the answer of one that names nothing; so does, to a customer, what its own
// tenant has of others. What the role may know is answered otherwise, so the comparison can fail.
func TestForeignIdsAnswerLikeAbsentOnes(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.demo.draftID = a.draft(t, a.demo, a.demo.customerID)
	a.demo.refundID, a.other.refundID = a.lostRefund(t, a.demo), a.lostRefund(t, a.other)
	before := a.rows(t)
	for name, q := range idQueries {
		for _, kind := range strings.Fields(q.kinds) {
			_, foreign := a.other.ids(kind)
			own, hidden := a.demo.ids(kind)
			for _, role := range roles[:3] {
				ask := func(id string) string { return a.askWith(t, a.demo, role, q.query, id).masked() }
				nothing := ask(absent(kind))
				if got := ask(foreign); got != nothing {
					t.Errorf("%s as %s: a foreign %s answers %s, an absent one %s", name, role, kind, got, nothing)
				}
				if role == "CUSTOMER" && !slices.Contains(told, name) {
					if got := ask(hidden); got != nothing {
						t.Errorf("%s as %s: what the tenant has of others answers %s, an absent %s %s", name, role, got, kind, nothing)
					}
				}
				reads := strings.HasPrefix(name, "Query.") && (role != "CUSTOMER" || kind != "ser") && (role == "ADMIN" || kind != "tok") &&
					slices.Contains(rule(schema.Query, schema.Query.Fields.ForName(strings.Split(name, ".")[1])), role)
				if reads && ask(own) == nothing {
					t.Errorf("%s as %s: its own %s answers like an absent one: %s", name, role, kind, nothing)
				}
			}
		}
	}
	if a.rows(t) != before {
		t.Error("a mutation with a foreign or an absent id had an effect")
	}
}

// TestRefusedAllocationTakesNoNumber: an allocation that a foreign or an absent id refused leaves
// no hole: the next number follows the last.
func TestRefusedAllocationTakesNoNumber(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	ask := func(field, id string) response {
		return a.askWith(t, a.demo, "SERVICE", idQueries["AllocateInvoiceInput."+field].query, id)
	}
	for _, r := range []response{
		ask("seriesId", a.other.seriesID), ask("seriesId", absent("ser")), ask("customerId", a.other.customerID), ask("customerId", absent("cus")),
	} {
		if got := r.list(t, "allocateInvoice.userErrors", "code"); len(got) != 1 || got[0] != "NOT_FOUND" {
			t.Errorf("answered %s, want the user error NOT_FOUND", r.body)
		}
	}
	id := ask("seriesId", a.demo.seriesID).at(t, "allocateInvoice.invoice.id")
	r := a.must(t, a.demo.service, `query ($id: ID!) { invoice(id: $id) { sequence } }`, vars{"id": id})
	if got := r.text(t, "invoice.sequence"); got != "3" {
		t.Errorf("the next invoice has the number %s, want 3", got)
	}
}

// TestListsHoldWhatTheCallerSees: lists, nested ones included, hold the rows of the caller's tenant
// and, to a customer, of that customer alone.
func TestListsHoldWhatTheCallerSees(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	n := a.demo
	for _, c := range []struct{ token, query, path, want string }{
		{n.admin, `{ invoices { nodes { id } } }`, "invoices.nodes", n.invoiceID + " " + n.neighbourInvoiceID},
		{n.service, `{ invoices { nodes { id } } }`, "invoices.nodes", n.invoiceID + " " + n.neighbourInvoiceID},
		{n.customer, `{ invoices { nodes { id } } }`, "invoices.nodes", n.invoiceID},
		{n.customer, `{ invoices(last: 5) { nodes { id } } }`, "invoices.nodes", n.invoiceID},
		{n.customer, `{ invoices(filter: {customerId: "` + n.customerID + `"}) { nodes { id } } }`, "invoices.nodes", n.invoiceID},
		{n.customer, `{ invoices(filter: {customerId: "` + n.neighbourID + `"}) { nodes { id } } }`, "invoices.nodes", ""},
		{n.customer, `{ invoices(filter: {customerId: null, status: PENDING}) { nodes { id } } }`, "invoices.nodes", n.invoiceID},
		{n.customer, `{ invoices { nodes { customer { invoices { nodes { id } } } } } }`, "invoices.nodes.0.customer.invoices.nodes", n.invoiceID},
		{n.customer, `{ customer(id: "` + n.customerID + `") { invoices { nodes { id } } } }`, "customer.invoices.nodes", n.invoiceID},
		{n.admin, `{ orders { nodes { id } } }`, "orders.nodes", n.orderID + " " + n.neighbourOrderID},
		{n.service, `{ orders(filter: {status: PENDING}) { nodes { id } } }`, "orders.nodes", n.neighbourOrderID},
		{n.service, `{ orders(filter: {customerId: "` + n.customerID + `", status: PENDING}) { nodes { id } } }`, "orders.nodes", ""},
		{n.customer, `{ orders { nodes { id } } }`, "orders.nodes", n.orderID},
		{n.customer, `{ orders(last: 5) { edges { node { id } } nodes { id } } }`, "orders.nodes", n.orderID},
		{n.customer, `{ orders(filter: {customerId: "` + n.customerID + `"}) { nodes { id } } }`, "orders.nodes", n.orderID},
		{n.customer, `{ orders(filter: {customerId: "` + n.neighbourID + `"}) { nodes { id } } }`, "orders.nodes", ""},
		{n.customer, `{ orders(filter: {status: PENDING}) { nodes { id } } }`, "orders.nodes", ""},
		{a.other.service, `{ orders { nodes { id } } }`, "orders.nodes", a.other.orderID + " " + a.other.neighbourOrderID},
		{n.admin, `{ products { nodes { id } } }`, "products.nodes", n.productID + " " + n.retiredID},
		{n.service, `{ products(filter: {onlyActive: true}) { nodes { id } } }`, "products.nodes", n.productID},
		{n.service, `{ products(filter: {onlyActive: false}) { nodes { id } } }`, "products.nodes", n.productID + " " + n.retiredID},
		{n.customer, `{ products { nodes { id } } }`, "products.nodes", n.productID},
		{n.customer, `{ products(last: 5) { nodes { id } } }`, "products.nodes", n.productID},
		{n.customer, `{ products(filter: {onlyActive: false}) { nodes { id } } }`, "products.nodes", n.productID},
		{a.other.customer, `{ products { nodes { id } } }`, "products.nodes", a.other.productID},
		{n.customer, `{ nodes(ids: ["` + n.customerID + `", "` + n.invoiceID + `"]) { id } }`, "nodes", n.customerID + " " + n.invoiceID},
		{n.admin, `{ customers { nodes { id } } }`, "customers.nodes", n.customerID + " " + n.neighbourID},
		{n.service, `{ invoiceSeriesList { nodes { id } } }`, "invoiceSeriesList.nodes", n.seriesID + " " + n.creditSeriesID},
		{n.admin, `{ invoiceSeries(id: "` + n.seriesID + `") { invoices { nodes { id } } } }`, "invoiceSeries.invoices.nodes", n.invoiceID + " " + n.neighbourInvoiceID},
		{n.customer, `{ apiKeys(filter: {customerId: "` + n.neighbourID + `"}) { nodes { id } } }`, "apiKeys.nodes", ""},
		{n.service, `{ apiKeys(filter: {customerId: "` + n.neighbourID + `"}, first: 1) { nodes { id } } }`, "apiKeys.nodes", n.neighbourKeyID},
		{n.customer, `{ apiKeys(first: 1) { nodes { id } } }`, "apiKeys.nodes", n.keyID},
		{n.admin, `{ settlements { nodes { id } } }`, "settlements.nodes", n.settlementID + " " + n.neighbourSettlementID},
		{n.service, `{ settlements(filter: {customerId: "` + n.neighbourID + `"}) { nodes { id } } }`, "settlements.nodes", n.neighbourSettlementID},
		{n.service, `{ settlements(filter: {apiKeyId: "` + n.keyID + `"}) { nodes { id } } }`, "settlements.nodes", ""},
		{n.customer, `{ settlements { nodes { id } } }`, "settlements.nodes", n.settlementID},
		{n.customer, `{ settlements(last: 5) { nodes { id } } }`, "settlements.nodes", n.settlementID},
		{n.customer, `{ settlements(filter: {customerId: "` + n.neighbourID + `"}) { nodes { id } } }`, "settlements.nodes", ""},
		{a.other.customer, `{ settlements { nodes { id } } }`, "settlements.nodes", a.other.settlementID},
		{a.other.admin, `{ invoices { nodes { id } } }`, "invoices.nodes", a.other.invoiceID + " " + a.other.neighbourInvoiceID},
	} {
		if got := strings.Join(a.must(t, c.token, c.query, nil).list(t, c.path, "id"), " "); got != c.want {
			t.Errorf("%s answers %s, want %s", c.query, got, c.want)
		}
	}
}
