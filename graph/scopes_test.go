package graph_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"countersign/graph"
	"countersign/internal/auth"
	"countersign/internal/domain"
)

// scopeOf is the scope that a mutation takes; "" where it names none.
func scopeOf(field *ast.FieldDefinition) domain.Scope {
	if d := field.Directives.ForName("access"); d != nil && d.Arguments.ForName("scope") != nil {
		return graph.ScopeNamed(d.Arguments.ForName("scope").Value.Raw)
	}
	return ""
}

// TestEveryMutationHasAScope: what a token may be narrowed to covers every mutation. One without a
// scope would be closed to every narrowed token.
func TestEveryMutationHasAScope(t *testing.T) {
	t.Parallel()
	for _, field := range fields(schema.Mutation) {
		if scope := scopeOf(field); scope == "" || scope == domain.ScopeRead {
			t.Errorf("Mutation.%s takes the scope %q: say at its @access which scope it takes, as in @access(to: […], scope: INVOICES_WRITE); a new noun's scope is added to enum Scope in base.graphqls, to internal/domain/scope.go and to gqlgen.yml", field.Name, scope)
		}
	}
	var known []domain.Scope
	for _, value := range schema.Types["Scope"].EnumValues {
		known = append(known, graph.ScopeNamed(value.Name))
	}
	slices.Sort(known)
	if all := slices.Sorted(slices.Values(domain.AllScopes)); !slices.Equal(known, all) {
		t.Errorf("the schema has the scopes %v, the domain %v", known, all)
	}
}

// narrow makes a token of the demo tenant that is narrowed to scopes.
func (a *api) narrow(t testing.TB, role domain.Role, scopes ...domain.Scope) string {
	t.Helper()
	n := auth.NewToken{TenantID: a.demo.id, Role: role, Scopes: scopes}
	if role == domain.RoleCustomer {
		n.CustomerID = new(parse[domain.CustomerID](t, a.demo.customerID))
	}
	token, _, err := a.tokens.Create(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// wantMissing fails unless a field was refused for want of a scope, which the answer names.
func wantMissing(t *testing.T, r response, what string, scope domain.Scope) {
	t.Helper()
	if codes := r.codes(); !slices.Equal(codes, []string{"FORBIDDEN"}) || !strings.Contains(r.errors[0].Message, "scope "+string(scope)) {
		t.Errorf("%s is answered %s, want FORBIDDEN that names %s", what, r.body, scope)
	}
}

// TestScopesOfMutations: a token that has every scope but a mutation's is refused it, by name and
// without effect; one that has only that scope may run it, and read what it answers.
func TestScopesOfMutations(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, field := range fields(schema.Mutation) {
		scope := scopeOf(field)
		others := slices.DeleteFunc(slices.Clone(domain.AllScopes), func(s domain.Scope) bool { return s == scope })
		query := `mutation { f: ` + field.Name + rootArguments[field.Name](t, a, "ADMIN") + ` { userErrors { code message } } }`
		before := a.rows(t)
		without := a.narrow(t, domain.RoleAdmin, others...)
		r := a.do(t, without, query, nil)
		wantMissing(t, r, field.Name, scope)
		if made := a.rows(t) - before; made != 1 { // the token
			t.Errorf("%s had an effect: %d rows", field.Name, made-1)
		}
		switch field.Name {
		case "rotateAccessToken", "createAccessToken": // give no more than they have, see TestNoTokenGivesMoreThanItHas
			continue
		}
		if r := a.do(t, a.narrow(t, domain.RoleAdmin, scope), query, nil); len(r.errors) > 0 || strings.Contains(r.body, "code") {
			t.Errorf("%s with its scope alone is answered %s", field.Name, r.body)
		}
	}
}

// TestQueriesTakeRead: every query takes the scope to read, and with it alone every one is answered.
func TestQueriesTakeRead(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	reader := a.narrow(t, domain.RoleAdmin, domain.ScopeRead)
	writer := a.narrow(t, domain.RoleAdmin, domain.AllScopes[1:]...)
	for _, field := range fields(schema.Query) {
		query := "{ f: " + field.Name + rootArguments[field.Name](t, a, "ADMIN") + leaf(field) + " }"
		if r := a.do(t, reader, query, nil); len(r.errors) > 0 {
			t.Errorf("a reader asks %s and gets %s", field.Name, r.body)
		}
		wantMissing(t, a.do(t, writer, query, nil), field.Name, domain.ScopeRead)
	}
	if r := a.do(t, writer, "{ __typename }", nil); len(r.errors) > 0 {
		t.Errorf("__typename: %s", r.body)
	}
}

// TestWritingIsNotReading: who may only write reads what the mutation made, and does not come from
// there to everything else.
func TestWritingIsNotReading(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	const mutation = `mutation ($id: ID!, $p: ID!) { placeOrder(input: {idempotencyKey: "k", customerId: $id, items: [{productId: $p, quantity: 1}]}) {
		order { id status total { formatted } items { name %s } payments { status } %s } } }`
	ids := vars{"id": a.demo.customerID, "p": a.demo.productID}
	writer := a.narrow(t, domain.RoleService, domain.ScopeOrdersWrite)
	ask := func(token, item, order string) response {
		return a.do(t, token, strings.Replace(strings.Replace(mutation, "%s", item, 1), "%s", order, 1), ids)
	}
	if r := ask(writer, "", ""); len(r.errors) > 0 || r.at(t, "placeOrder.order.status") != "PAID" {
		t.Errorf("what it made: %s", r.body)
	}
	r := ask(writer, "", "customer { name invoices { nodes { number } } }")
	if wantMissing(t, r, "Order.customer", domain.ScopeRead); r.at(t, "placeOrder.order.status") != "PAID" {
		t.Errorf("the rest of the answer: %s", r.body)
	}
	wantMissing(t, ask(writer, "product { sku }", ""), "OrderItem.product", domain.ScopeRead)
	if r := ask(a.narrow(t, domain.RoleService, domain.ScopeOrdersWrite, domain.ScopeRead), "product { sku }", "customer { name }"); len(r.errors) > 0 {
		t.Errorf("with both scopes: %s", r.body)
	}
}

// TestScopesAreWithinTheRole: a scope gives no right that the role has not.
func TestScopesAreWithinTheRole(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, role := range []domain.Role{domain.RoleService, domain.RoleCustomer} {
		token := a.narrow(t, role, domain.AllScopes...)
		for _, field := range []string{"voidInvoice", "createAccessToken"} {
			r := a.do(t, token, `mutation { f: `+field+rootArguments[field](t, a, string(role))+` { userErrors { code } } }`, nil)
			wantForbidden(t, string(role), field, r)
		}
	}
}

// TestNoTokenGivesMoreThanItHas: a narrowed token makes and rotates tokens of its own scopes or
// fewer; all of them it cannot give, and a refusal leaves nothing behind.
func TestNoTokenGivesMoreThanItHas(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	token := a.narrow(t, domain.RoleAdmin, domain.ScopeTokensWrite, domain.ScopeRead)
	_, other, err := a.tokens.Create(t.Context(), auth.NewToken{TenantID: a.demo.id, Role: domain.RoleAdmin, Scopes: []domain.Scope{domain.ScopeRead}})
	if err != nil {
		t.Fatal(err)
	}
	const create = `mutation ($s: [Scope!]) { f: createAccessToken(input: {role: SERVICE, name: "x", scopes: $s}) { accessToken { scopes createdBy } secret userErrors { code } } }`
	const rotate = `mutation ($id: ID!) { f: rotateAccessToken(input: {tokenId: $id}) { accessToken { scopes replaces } secret userErrors { code } } }`
	before := a.rows(t)
	for _, scopes := range []any{nil, []string{"READ", "INVOICES_WRITE"}, []string{"KEYS_WRITE"}} {
		wantForbidden(t, "a narrowed token", "createAccessToken", a.do(t, token, create, vars{"s": scopes}))
	}
	wantForbidden(t, "a narrowed token", "rotateAccessToken", a.do(t, token, rotate, vars{"id": a.demo.tokenID}))
	if a.rows(t) != before {
		t.Error("what was refused left rows behind")
	}
	made := a.must(t, token, create, vars{"s": []string{"READ"}})
	if got := made.list(t, "f.accessToken.scopes", ""); !slices.Equal(got, []string{"READ"}) || !strings.HasPrefix(made.text(t, "f.accessToken.createdBy"), "tok_") {
		t.Errorf("made %s", made.body)
	}
	if r := a.must(t, made.text(t, "f.secret"), `{ customers { nodes { id } } }`, nil); r.at(t, "customers") == nil {
		t.Errorf("the token it made is answered %s", r.body)
	}
	if r := a.must(t, token, rotate, vars{"id": other.ID.String()}); r.at(t, "f.accessToken.replaces") != other.ID.String() {
		t.Errorf("rotated %s", r.body)
	}
}

// TestTokensOnTheWire: an administrator makes, lists, rotates and revokes tokens; a secret is shown
// once, and each row says who.
func TestTokensOnTheWire(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	const create = `mutation { f: createAccessToken(input: {role: CUSTOMER, customerId: "<id>", name: "shop", scopes: [READ, ORDERS_WRITE], expiresAt: "2999-01-01T00:00:00Z", idempotencyKey: "k"}) {
		accessToken { id scopes customer { name } history { event } expiresAt } secret replayed userErrors { code path } } }`
	made := a.must(t, a.demo.admin, strings.Replace(create, "<id>", a.demo.customerID, 1), nil)
	secret, id := made.text(t, "f.secret"), made.text(t, "f.accessToken.id")
	again := a.must(t, a.demo.admin, strings.Replace(create, "<id>", a.demo.customerID, 1), nil)
	if again.at(t, "f.secret") != nil || again.at(t, "f.replayed") != true || again.at(t, "f.accessToken.id") != id {
		t.Errorf("a replay is answered %s", again.body)
	}
	if made.at(t, "f.accessToken.customer.name") != "Rook & Pawn" {
		t.Errorf("made %s", made.body)
	}
	rotated := a.must(t, a.demo.admin, `mutation { f: rotateAccessToken(input: {tokenId: "`+id+`", graceSeconds: 3600}) { accessToken { id scopes name role expiresAt } secret userErrors { code } } }`, nil)
	successor := rotated.text(t, "f.secret")
	for _, token := range []string{secret, successor} {
		a.must(t, token, `{ orders { nodes { id } } }`, nil)
	}
	revoke := `mutation { f: revokeAccessToken(input: {tokenId: "` + id + `"}) { accessToken { revokedAt history { event by } } replayed userErrors { code } } }`
	first := a.must(t, a.demo.admin, revoke, nil)
	if got := first.list(t, "f.accessToken.history", "event"); !slices.Equal(got, []string{"ROTATED", "REVOKED"}) || strings.Count(first.body, `"by":"tok_`) != 2 {
		t.Errorf("revoked: %s", first.body)
	}
	if r := a.must(t, a.demo.admin, revoke, nil); r.at(t, "f.replayed") != true || r.at(t, "f.accessToken.revokedAt") != first.at(t, "f.accessToken.revokedAt") {
		t.Errorf("revoked again: %s", r.body)
	}
	wantCodes(t, a.do(t, secret, `{ __typename }`, nil), "UNAUTHENTICATED")
	a.must(t, successor, `{ __typename }`, nil)
	list := a.must(t, a.demo.admin, `{ accessTokens(first: 100) { nodes { id name role scopes hint createdBy createdAt expiresAt revokedAt replaces version customer { id } history { event by at } } } }`, nil)
	wantNone(t, list.body, secret, successor)
	wantNone(t, a.log.String(), secret, successor)
	if !strings.Contains(list.body, `"createdBy":"command"`) || !strings.Contains(list.body, id) {
		t.Errorf("the list is %s", list.body)
	}
}
