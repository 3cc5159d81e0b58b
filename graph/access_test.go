package graph_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vektah/gqlparser/v2/ast"

	"countersign/graph"
	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/payment"
)

// schema is the schema as the server has it.
var schema = graph.NewExecutableSchema(graph.Config{}).Schema()

// A caller is one of the roles, or nobody.
var roles = []string{"ADMIN", "SERVICE", "CUSTOMER", "nobody"}

// token is the tenant's token of a role.
func (n *tenant) token(role string) string {
	return map[string]string{"ADMIN": n.admin, "SERVICE": n.service, "CUSTOMER": n.customer}[role]
}

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

// typeAt is a root field that answers with each type that has rules, and its arguments.
var typeAt = map[string]string{
	"Customer": "customer", "Invoice": "invoice", "InvoiceSeries": "invoiceSeries", "Product": "product", "Order": "order",
	"SeriesPresetRule": "seriesPresets", "ApiKey": "apiKey", "UsageSettlement": "settlement", "DoctorReport": "doctor", "AccessToken": "accessToken",
	"Seller": "seller", "SeriesAudit": "seriesAudit",
}

// rule are the roles that may reach a field: its own rule, else its type's; nil where there is none.
func rule(def *ast.Definition, field *ast.FieldDefinition) (roles []string) {
	d := field.Directives.ForName("access")
	if d == nil {
		d = def.Directives.ForName("access")
	}
	if d == nil {
		return nil
	}
	for _, role := range d.Arguments.ForName("to").Value.Children {
		roles = append(roles, role.Value.Raw)
	}
	return roles
}

// fields are a type's, without those of introspection.
func fields(def *ast.Definition) (out []*ast.FieldDefinition) {
	for _, field := range def.Fields {
		if !strings.HasPrefix(field.Name, "__") {
			out = append(out, field)
		}
	}
	return out
}

// leaf selects something of a field that every role which reaches the field may read.
func leaf(field *ast.FieldDefinition) string {
	if schema.Types[field.Type.Name()].IsLeafType() {
		return ""
	}
	return " { __typename }"
}

// TestEveryFieldHasARule: no field that an id or a request can begin at is without a rule who may
// reach it; one that was forgotten would be open to everybody.
func TestEveryFieldHasARule(t *testing.T) {
	t.Parallel()
	for _, def := range schema.Types {
		root := def == schema.Query || def == schema.Mutation
		if def.Kind != ast.Object || !root && !slices.Contains(def.Interfaces, "Node") {
			continue
		}
		for _, field := range fields(def) {
			if len(rule(def, field)) == 0 {
				t.Errorf("%s.%s has no @access rule", def.Name, field.Name)
			}
		}
	}
}

// TestRootFieldsByRole: each root field of the schema answers each role as its rule says: a role
// that is not listed gets FORBIDDEN and no effect, nobody gets UNAUTHENTICATED.
func TestRootFieldsByRole(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, def := range []*ast.Definition{schema.Query, schema.Mutation} {
		for _, field := range fields(def) {
			arguments, known := rootArguments[field.Name]
			if !known {
				t.Errorf("%s.%s is not in the table of arguments", def.Name, field.Name)
				continue
			}
			for _, role := range roles {
				selection := leaf(field)
				if def == schema.Mutation {
					selection = " { userErrors { code message } }"
				}
				query := strings.ToLower(def.Name) + " { f: " + field.Name + arguments(t, a, role) + selection + " }"
				before := a.rows(t)
				r := a.do(t, a.demo.token(role), query, nil)
				switch may := slices.Contains(rule(def, field), role); {
				case role == "nobody":
					if r.status != 401 || r.data != nil {
						t.Errorf("nobody asked %s and got %d %s", query, r.status, r.body)
					}
					wantCodes(t, r, "UNAUTHENTICATED")
				case may && (len(r.errors) > 0 || r.at(t, "f") == nil || strings.Contains(r.body, "code")):
					t.Errorf("%s may reach %s and got %s", role, field.Name, r.body)
				case !may:
					wantForbidden(t, role, field.Name, r)
				}
				if def == schema.Mutation && len(r.errors) > 0 && a.rows(t) != before {
					t.Errorf("%s asked %s in vain, and yet it had an effect", role, query)
				}
			}
		}
	}
}

// TestFieldsByRole: each field of a type with rules answers each role as the field's or its type's
// rule says, where the role can reach the type at all.
func TestFieldsByRole(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, def := range schema.Types {
		for _, field := range fields(def) {
			may := rule(def, field)
			if may == nil || def == schema.Query || def == schema.Mutation {
				continue
			}
			root, known := typeAt[def.Name]
			if !known {
				t.Errorf("the table does not say how a request comes to %s", def.Name)
				break
			}
			reaches := rule(schema.Query, schema.Query.Fields.ForName(root))
			for _, role := range roles[:3] {
				query := "{ f: " + root + rootArguments[root](t, a, role) + " { f: " + field.Name + leaf(field) + " } }"
				r := a.do(t, a.demo.token(role), query, nil)
				switch {
				case !slices.Contains(reaches, role), !slices.Contains(may, role):
					wantForbidden(t, role, def.Name+"."+field.Name, r)
				case len(r.errors) > 0:
					t.Errorf("%s may reach %s.%s and got %s", role, def.Name, field.Name, r.body)
				}
			}
		}
	}
}

// TestForbiddenFieldHidesNothingElse: a field that a role may not reach is null; what stands beside
// it is answered.
func TestForbiddenFieldHidesNothingElse(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	r := a.do(t, a.demo.customer, `query ($id: ID!) { invoice(id: $id) { number series { code } total { formatted } } }`, vars{"id": a.demo.invoiceID})
	wantForbidden(t, "CUSTOMER", "series", r)
	if r.at(t, "invoice.series") != nil || r.at(t, "invoice.number") != "INV-00001" || r.at(t, "invoice.total.formatted") != "€99.00" {
		t.Errorf("the invoice is answered %s", r.body)
	}
}

// TestAttentionIsForStaff: why a person has to look at an order is nothing for its customer, who
// reads the rest of it.
func TestAttentionIsForStaff(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	a.db.Exec(t, `UPDATE orders SET attention = 'a secret of the house'`)
	const query = `query ($id: ID!) { order(id: $id) { status total { formatted } attention } }`
	r := a.do(t, a.demo.customer, query, vars{"id": a.demo.orderID})
	wantForbidden(t, "CUSTOMER", "attention", r)
	wantNone(t, r.body, "secret")
	if r.at(t, "order.attention") != nil || r.at(t, "order.status") != "PAID" || r.at(t, "order.total.formatted") != "€49.50" {
		t.Errorf("the order is answered %s", r.body)
	}
	for _, token := range []string{a.demo.admin, a.demo.service} {
		if got := a.must(t, token, query, vars{"id": a.demo.orderID}).text(t, "order.attention"); got != "a secret of the house" {
			t.Errorf("the staff reads %s", got)
		}
	}
}

func wantForbidden(t *testing.T, role, field string, r response) {
	t.Helper()
	if codes := r.codes(); len(codes) != 1 || codes[0] != "FORBIDDEN" {
		t.Errorf("%s may not reach %s and got %s", role, field, r.body)
	}
}

// rows is how many rows the mutations have made so far: a move of an order, or
// of an invoice, is a row of its history.
func (a *api) rows(t testing.TB) (n int) {
	t.Helper()
	for _, table := range []string{"customers", "invoice_series", "invoices", "products", "product_changes", "orders", "order_history", "payment_attempts",
		"api_keys", "api_key_revocations", "usage_events", "usage_batches", "settlements", "billing_exemptions", "invoice_history",
		"access_tokens", "access_token_history", "series_changes", "series_entries",
		"seller_revisions", "customer_revisions"} {
		n += a.count(t, table, "true")
	}
	return n + a.count(t, "billing_exemptions", "ended_at IS NOT NULL")
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
