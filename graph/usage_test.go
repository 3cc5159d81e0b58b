package graph_test

import (
	"strings"
	"testing"
	"time"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/metering"
)

func (n *tenant) adminCaller() auth.Caller {
	return auth.Caller{TenantID: n.id, Role: domain.RoleAdmin}
}

func (a *api) newCustomer(t testing.TB, of *tenant) string {
	t.Helper()
	c, err := a.service.CreateCustomer(t.Context(), of.adminCaller(), invoicing.CreateCustomerInput{Name: "Knight", Currency: "EUR"})
	if err != nil {
		t.Fatal(err)
	}
	return c.Value.ID.String()
}

func (a *api) exempt(t testing.TB, of *tenant, customer string) {
	t.Helper()
	in := metering.GrantBillingExemptionInput{CustomerID: parse[domain.CustomerID](t, customer), Reason: "a partner"}
	if _, err := a.metering.GrantExemption(t.Context(), of.adminCaller(), in); err != nil {
		t.Fatal(err)
	}
}

// key makes a key of a customer, at half a minor unit.
func (a *api) key(t testing.TB, of *tenant, customer string) string {
	t.Helper()
	in := metering.CreateAPIKeyInput{CustomerID: parse[domain.CustomerID](t, customer), Name: "desk"}
	if err := in.UnitPrice.UnmarshalGQL("0.5"); err != nil {
		t.Fatal(err)
	}
	k, err := a.metering.CreateKey(t.Context(), of.adminCaller(), in)
	if err != nil {
		t.Fatal(err)
	}
	return k.Value.ID.String()
}

// revoke ends a key and returns its settlement of this month.
func (a *api) revoke(t testing.TB, of *tenant, key string) string {
	t.Helper()
	r, err := a.metering.Revoke(t.Context(), of.adminCaller(), metering.RevokeAPIKeyInput{APIKeyID: parse[domain.APIKeyID](t, key)})
	if err != nil {
		t.Fatal(err)
	}
	return r.Value.Settlement.ID.String()
}

// manyKeys brings the tenant to 100 keys of ten customers, most of them used and revoked, and 100
// settlements; some are on an invoice. It returns the keys' ids.
func (a *api) manyKeys(t *testing.T) []string {
	t.Helper()
	var customers, keys []string
	for range 10 {
		customers = append(customers, a.newCustomer(t, a.demo))
	}
	var in metering.RecordUsageInput
	use := func(key string, at time.Time) {
		in.Events = append(in.Events, metering.UsageEventInput{
			ID: key + at.String(), APIKeyID: parse[domain.APIKeyID](t, key), Quantity: int64(10 + len(keys)), OccurredAt: at,
		})
	}
	for i := range 96 { // beside the four of the harness
		keys = append(keys, a.key(t, a.demo, customers[i%10]))
		if i%7 != 0 {
			use(keys[i], time.Now())
		}
	}
	for _, key := range keys[:2] { // these have a settlement more
		use(key, time.Now().AddDate(0, 0, -32))
	}
	if out, err := a.metering.RecordUsage(t.Context(), a.demo.adminCaller(), in); err != nil || len(out.Value.Refused) > 0 {
		t.Fatal(err, out.Value.Refused)
	}
	for _, key := range keys {
		a.revoke(t, a.demo, key)
	}
	return a.must(t, a.demo.admin, `{ apiKeys(first: 100) { nodes { id } } }`, nil).list(t, "apiKeys.nodes", "id")
}

// TestSecretIsShownOnce: whoever makes a key is told its secret; a replay is answered the key
// without it, and nothing else that the server says of the key has it.
func TestSecretIsShownOnce(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	const create = `mutation ($i: CreateApiKeyInput!) { createApiKey(input: $i) { apiKey { id hint status unitPrice } secret replayed userErrors { code } } }`
	input := vars{"customerId": a.demo.customerID, "name": "desk", "unitPrice": "0.077", "idempotencyKey": "the form"}
	first := a.must(t, a.demo.service, create, vars{"i": input})
	secret := first.text(t, "createApiKey.secret")
	if !strings.HasPrefix(secret, "ck_") || first.text(t, "createApiKey.apiKey.unitPrice") != "0.077" || first.at(t, "createApiKey.apiKey.status") != "ACTIVE" {
		t.Errorf("a new key is answered %s", first.body)
	}
	again := a.must(t, a.demo.service, create, vars{"i": input})
	if again.at(t, "createApiKey.secret") != nil || again.at(t, "createApiKey.replayed") != true || again.at(t, "createApiKey.apiKey.id") != first.at(t, "createApiKey.apiKey.id") {
		t.Errorf("a replay is answered %s", again.body)
	}
	read := a.must(t, a.demo.admin, `query ($id: ID!) { apiKey(id: $id) { id name hint } }`, vars{"id": first.at(t, "createApiKey.apiKey.id")})
	wantNone(t, again.body+read.body+a.log.String(), secret)
	if a.count(t, "api_keys", "api_keys::text LIKE '%' || $1 || '%'", secret) != 0 {
		t.Error("the secret is kept")
	}
}

const record = `mutation ($i: RecordUsageInput!) { f: recordUsage(input: $i) { accepted duplicates userErrors { code path message } } }`

// TestUsageIsRepeatable: a request with a key is answered the same again, what it refused included,
// and its key with other events is refused; without a key each event counts once by its own id.
func TestUsageIsRepeatable(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	event := func(id, key string) vars {
		return vars{"id": id, "apiKeyId": key, "quantity": 3, "occurredAt": domain.FormatTime(time.Now())}
	}
	events := []vars{event("one", a.demo.keyID), event("two", absent("key"))}
	ask := func(token string, events []vars, key any) response {
		return a.do(t, token, record, vars{"i": vars{"events": events, "idempotencyKey": key}})
	}
	first := ask(a.demo.service, events, "batch")
	if first.text(t, "f.accepted") != "1" || strings.Join(first.list(t, "f.userErrors", "code"), " ") != "NOT_FOUND" || len(first.extensions) != 0 {
		t.Errorf("a batch is answered %s", first.body)
	}
	if path := strings.Join(first.list(t, "f.userErrors.0.path", ""), "."); path != "input.events.1.apiKeyId" {
		t.Errorf("the refusal is about %s", path)
	}
	before := a.rows(t)
	if again := ask(a.demo.admin, events, "batch"); again.masked() != first.masked() {
		t.Errorf("the same batch is answered %s, want %s", again.body, first.body)
	}
	other := ask(a.demo.service, events[:1], "batch")
	if strings.Join(other.list(t, "f.userErrors", "code"), " ") != "IDEMPOTENCY_KEY_REUSED" || other.text(t, "f.accepted") != "0" {
		t.Errorf("a used key with other events is answered %s", other.body)
	}
	if unkeyed := ask(a.demo.service, events[:1], nil); unkeyed.text(t, "f.accepted") != "0" || unkeyed.text(t, "f.duplicates") != "1" {
		t.Errorf("a known event is answered %s", unkeyed.body)
	}
	if a.rows(t) != before {
		t.Error("a repetition had an effect")
	}
	if r := ask(a.other.service, []vars{event("one", a.other.keyID)}, "batch"); r.text(t, "f.accepted") != "1" {
		t.Errorf("another tenant's event of that id is answered %s", r.body)
	}
}

// TestCustomerRevokesItsOwnKey: a customer ends its own key and reads what became of its usage, as
// often as it asks; its neighbour's key answers like one that does not exist, and stays.
func TestCustomerRevokesItsOwnKey(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	n := a.demo
	const revoke = `mutation ($id: ID!) { f: revokeApiKey(input: {apiKeyId: $id}) { apiKey { status revokedAt } userErrors { code }
		settlement { id outcome quantity amount attempts receipt { result } invoice { status total { amountMinor } waivedBy { cause } } } settlements { id } } }`
	a.must(t, n.service, record, vars{"i": vars{"events": []vars{{"id": "one", "apiKeyId": n.keyID, "quantity": 7, "occurredAt": domain.FormatTime(time.Now())}}}})
	first := a.must(t, n.customer, revoke, vars{"id": n.keyID})
	for path, want := range map[string]string{
		"apiKey.status": "REVOKED", "settlement.outcome": "FOLDED", "settlement.quantity": "7", "settlement.amount": "3.5", "settlement.attempts": "1",
		"settlement.invoice.status": "OPEN", "settlement.invoice.total.amountMinor": "4",
	} {
		if got := first.text(t, "f."+path); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	if again := a.must(t, n.customer, revoke, vars{"id": n.keyID}); again.text(t, "f") != first.text(t, "f") {
		t.Errorf("asked again it is answered %s, want %s", again.body, first.body)
	}
	nothing := a.do(t, n.customer, revoke, vars{"id": absent("key")})
	if r := a.do(t, n.customer, revoke, vars{"id": n.neighbourKeyID}); r.masked() != nothing.masked() || strings.Join(r.list(t, "f.userErrors", "code"), " ") != "NOT_FOUND" {
		t.Errorf("a neighbour's key is answered %s, an absent one %s", r.body, nothing.body)
	}
	if a.count(t, "api_keys", "id = $1 AND status = 'ACTIVE'", parse[domain.APIKeyID](t, n.neighbourKeyID)) != 1 {
		t.Error("the neighbour's key is revoked")
	}
}

// TestInvoiceMovesAreNamed: a move that an invoice's state does not allow says from where and to
// where, and more than is due is refused; the invoice tells its history.
func TestInvoiceMovesAreNamed(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	pay := func(amount int) response {
		return a.do(t, a.demo.service, `mutation ($i: RecordInvoicePaymentInput!) { f: recordInvoicePayment(input: $i) { invoice { status paymentReference history { event fromStatus toStatus } }
			replayed userErrors { __typename code path ... on IllegalInvoiceTransitionError { from to } } } }`, vars{"i": vars{"invoiceId": a.demo.invoiceID, "amountMinor": amount, "reference": "transfer"}})
	}
	if r := pay(9901); !strings.Contains(r.body, `"code":"AMOUNT_MISMATCH","path":["input","amountMinor"]`) {
		t.Errorf("a cent more is answered %s", r.body)
	}
	if r := pay(9900); !strings.Contains(r.body, `{"status":"PAID","paymentReference":"transfer","history":[{"event":"CREATED","fromStatus":null,"toStatus":"PENDING"},{"event":"PAID","fromStatus":"PENDING","toStatus":"PAID"}]}`) {
		t.Errorf("the payment is answered %s", r.body)
	}
	if r := pay(9900); !strings.Contains(r.body, `{"__typename":"IllegalInvoiceTransitionError","code":"ILLEGAL_TRANSITION","path":["input","invoiceId"],"from":"PAID","to":"PAID"}`) {
		t.Errorf("a second payment is answered %s", r.body)
	}
}
