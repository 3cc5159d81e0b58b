package graph_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/payment"
)

// rootArguments are how each root field is asked by a role of the demo tenant, so that it succeeds
// where the role may. A field of the schema that is missing here fails the test: whoever adds one
// says who may reach it.
var rootArguments = map[string]func(t testing.TB, a *api, role string) string{
	"node":              id(func(n *tenant) string { return n.invoiceID }),
	"nodes":             func(_ testing.TB, a *api, _ string) string { return `(ids: ["` + a.demo.invoiceID + `"])` },
	"customer":          id(func(n *tenant) string { return n.customerID }),
	"customers":         nothing,
	"invoice":           id(func(n *tenant) string { return n.invoiceID }),
	"invoices":          nothing,
	"invoiceSeries":     id(func(n *tenant) string { return n.seriesID }),
	"invoiceSeriesList": nothing,
	"seriesPresets":     nothing,
	"product":           id(func(n *tenant) string { return n.productID }),
	"products":          nothing,
	"order":             id(func(n *tenant) string { return n.orderID }),
	"orders":            nothing,
	"ordersToLookAt":    nothing,
	"paymentEvents":     nothing,
	"apiKey":            id(func(n *tenant) string { return n.keyID }),
	"apiKeys":           nothing,
	"settlement":        id(func(n *tenant) string { return n.settlementID }),
	"settlements":       nothing,
	"doctor":            nothing,
	"accessToken":       id(func(n *tenant) string { return n.tokenID }),
	"accessTokens":      nothing,
	"createAccessToken": input(`role: SERVICE, name: "x", scopes: [READ]`),
	"rotateAccessToken": spareToken(`, graceSeconds: 60`),
	"revokeAccessToken": spareToken(``),
	"seriesAudit":       ofSeries,
	"seriesLedger":      ofSeries,
	"importNumbers": func(t testing.TB, a *api, _ string) string {
		return fmt.Sprintf(`(input: {seriesId: %q, numbers: [{number: %s}], reason: "x", dryRun: false})`, a.demo.creditSeriesID, a.nextCredit(t))
	},
	"resyncSeries": func(t testing.TB, a *api, _ string) string {
		next := a.nextCredit(t)
		return fmt.Sprintf(`(input: {seriesId: %q, explain: [{first: %s, last: %s, reason: "x"}], reason: "x", dryRun: false})`, a.demo.creditSeriesID, next, next)
	},
	"createCustomer": input(`name: "New", currency: "EUR"`),
	"createInvoiceSeries": func(_ testing.TB, _ *api, role string) string {
		return `(input: {code: "` + role + `"})`
	},
	"allocateInvoice": func(_ testing.TB, a *api, _ string) string {
		return fmt.Sprintf(`(input: {seriesId: %q, customerId: %q, currency: "EUR", lines: [{description: "x", quantity: 1, unitAmountMinor: 1}]})`, a.demo.seriesID, a.demo.customerID)
	},
	"createProduct": func(_ testing.TB, _ *api, role string) string {
		return `(input: {sku: "` + role + `", name: "x", unitPriceMinor: 1, currency: "EUR"})`
	},
	"updateProduct": func(t testing.TB, a *api, _ string) string {
		return fmt.Sprintf(`(input: {productId: %q, version: %q, name: "x"})`, a.demo.productID, a.version(t, a.demo.productID))
	},
	"placeOrder": func(_ testing.TB, a *api, role string) string {
		return fmt.Sprintf(`(input: {idempotencyKey: %q, customerId: %q, items: [{productId: %q, quantity: 1}]})`, role, a.demo.customerID, a.demo.productID)
	},
	"fulfillOrder": move(payment.SimOK, ""),
	"refundOrder":  move(payment.SimOK, ""),
	"returnPayment": func(_ testing.TB, a *api, _ string) string {
		return fmt.Sprintf(`(input: {orderId: %q, providerPaymentId: %q})`, a.demo.orderID, secondPayment)
	},
	"settleRefund": func(t testing.TB, a *api, role string) string {
		return fmt.Sprintf(`(input: {refundId: %q, reference: %q, note: "x"})`, a.lostRefund(t, a.demo), role)
	},
	"clearAttention": func(t testing.TB, a *api, _ string) string {
		a.db.Exec(t, `UPDATE orders SET attention = 'x' WHERE id = $1`, parse[domain.OrderID](t, a.demo.neighbourOrderID))
		return fmt.Sprintf(`(input: {orderId: %q, note: "x"})`, a.demo.neighbourOrderID)
	},
	"cancelOrder":  move(payment.SimDeclined, ""),
	"retryPayment": move(payment.SimDeclined, `, paymentMethod: "sim_ok"`),
	"createApiKey": func(_ testing.TB, a *api, _ string) string {
		return fmt.Sprintf(`(input: {customerId: %q, name: "x", unitPrice: "0.5"})`, a.demo.customerID)
	},
	"revokeApiKey": func(t testing.TB, a *api, _ string) string {
		return fmt.Sprintf(`(input: {apiKeyId: %q})`, a.key(t, a.demo, a.demo.customerID))
	},
	"recordUsage": func(_ testing.TB, a *api, role string) string {
		return fmt.Sprintf(`(input: {events: [{id: %q, apiKeyId: %q, quantity: 1, occurredAt: %q}]})`, role, a.demo.keyID, domain.FormatTime(time.Now()))
	},
	"grantBillingExemption": func(t testing.TB, a *api, _ string) string {
		return fmt.Sprintf(`(input: {customerId: %q, reason: "x"})`, a.newCustomer(t, a.demo))
	},
	"removeBillingExemption": func(t testing.TB, a *api, _ string) string {
		id := a.newCustomer(t, a.demo)
		a.exempt(t, a.demo, id)
		return fmt.Sprintf(`(input: {customerId: %q})`, id)
	},
	"recordInvoicePayment": ofInvoice(`amountMinor: 1, reference: "x"`),
	"createDraftInvoice": func(_ testing.TB, a *api, _ string) string {
		return fmt.Sprintf(`(input: {customerId: %q, currency: "EUR", lines: [{description: "x", quantity: 1, unitAmountMinor: 1}]})`, a.demo.customerID)
	},
	"updateDraftInvoice": ofDraft(`, version: "<version>", lines: [{description: "x", quantity: 1, unitAmountMinor: 1}]`),
	"deleteDraftInvoice": ofDraft(""),
	"finalizeInvoice":    ofDraft(""),
	"issueCreditNote":    ofInvoice(`reason: "x"`),
	"updateCustomer": func(t testing.TB, a *api, _ string) string {
		id := a.newCustomer(t, a.demo)
		return fmt.Sprintf(`(input: {customerId: %q, version: %q, name: "x"})`, id, a.version(t, id))
	},
	"seller": nothing,
	"updateSeller": func(t testing.TB, a *api, _ string) string {
		return fmt.Sprintf(`(input: {version: %q, name: "x"})`, a.must(t, a.demo.admin, `{ seller { version } }`, nil).text(t, "seller.version"))
	},
	"waiveInvoice": ofInvoice(`version: "<version>", reason: "x"`),
	"voidInvoice":  ofInvoice(`reason: "x"`),
}

func nothing(testing.TB, *api, string) string { return "" }

func ofSeries(_ testing.TB, a *api, _ string) string { return `(seriesId: "` + a.demo.seriesID + `")` }

func input(fields string) func(testing.TB, *api, string) string {
	return func(testing.TB, *api, string) string { return `(input: {` + fields + `})` }
}

func id(of func(*tenant) string) func(testing.TB, *api, string) string {
	return func(_ testing.TB, a *api, _ string) string { return `(id: "` + of(a.demo) + `")` }
}

// spareToken names an access token of its own.
func spareToken(fields string) func(testing.TB, *api, string) string {
	return func(t testing.TB, a *api, _ string) string {
		_, row, err := a.tokens.Create(t.Context(), auth.NewToken{TenantID: a.demo.id, Role: domain.RoleService})
		if err != nil {
			t.Fatal(err)
		}
		return `(input: {tokenId: "` + row.ID.String() + `"` + fields + `})`
	}
}

// move names an order of its own that stands where the move begins.
func move(method, more string) func(testing.TB, *api, string) string {
	return func(t testing.TB, a *api, _ string) string {
		return `(input: {orderId: "` + a.order(t, a.demo, a.demo.customerID, method, a.demo.productID) + `"` + more + `})`
	}
}

// ofInvoice names an invoice of its own, of one minor unit.
func ofInvoice(fields string) func(testing.TB, *api, string) string {
	return func(t testing.TB, a *api, _ string) string {
		id := a.invoice(t, a.demo, a.demo.seriesID, parse[domain.CustomerID](t, a.demo.customerID), 1)
		return `(input: {invoiceId: "` + id + `", ` + strings.ReplaceAll(fields, "<version>", a.version(t, id)) + `})`
	}
}

// ofDraft names a draft of its own.
func ofDraft(fields string) func(testing.TB, *api, string) string {
	return func(t testing.TB, a *api, _ string) string {
		id := a.draft(t, a.demo, a.demo.customerID)
		return `(input: {invoiceId: "` + id + `"` + strings.ReplaceAll(fields, "<version>", a.version(t, id)) + `})`
	}
}

// version is the version of a product, an order, an invoice or a customer of the demo tenant.
func (a *api) version(t testing.TB, id string) string {
	t.Helper()
	return a.must(t, a.demo.admin, `query ($id: ID!) { node(id: $id) { ... on Product { version } ... on Order { version } ... on Invoice { version } ... on Customer { version } } }`, vars{"id": id}).text(t, "node.version")
}

// nextCredit is the next number of the series for credit notes.
func (a *api) nextCredit(t testing.TB) string {
	t.Helper()
	return a.must(t, a.demo.admin, `query ($id: ID!) { invoiceSeries(id: $id) { counter { nextNumber } } }`, vars{"id": a.demo.creditSeriesID}).text(t, "invoiceSeries.counter.nextNumber")
}
