package graph_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"countersign/graph"
)

// schema is the schema as the server has it.
var schema = graph.NewExecutableSchema(graph.Config{}).Schema()

// A caller is one of the roles, or nobody.
var roles = []string{"ADMIN", "SERVICE", "CUSTOMER", "nobody"}

// token is the tenant's token of a role.
func (n *tenant) token(role string) string {
	return map[string]string{"ADMIN": n.admin, "SERVICE": n.service, "CUSTOMER": n.customer}[role]
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
