package graph_test

import (
	"strings"
	"testing"
)

// wantReplayed fails unless the answer says whether it was replayed, where its payload says so.
func (m repeatable) wantReplayed(t *testing.T, r response, want bool) {
	t.Helper()
	if untold[strings.TrimSuffix(m.inputType, "Input")+"Payload"] == "" && r.at(t, "f.replayed") != want {
		t.Errorf("%s is answered %s, want replayed %v", m.field, r.body, want)
	}
}

func (m repeatable) ask(t *testing.T, a *api, token string, input vars, key any) response {
	t.Helper()
	asked := vars{}
	for name, value := range input {
		asked[name] = value
	}
	if key != nil {
		asked["idempotencyKey"] = key
	}
	replayed := "replayed"
	if untold[strings.TrimSuffix(m.inputType, "Input")+"Payload"] != "" {
		replayed = ""
	}
	return a.do(t, token, `mutation ($input: `+m.inputType+`!) { f: `+m.field+`(input: $input) { `+m.result+` { id } `+replayed+` userErrors { message code path } } }`, vars{"input": asked})
}

// TestEveryMutationIsRepeatable walks the schema for mutations that the tests below do not know.
func TestEveryMutationIsRepeatable(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, m := range repeatables {
		known[m.field] = true
	}
	for _, field := range fields(schema.Mutation) {
		if !known[field.Name] && repeatedElsewhere[field.Name] == "" {
			t.Errorf("no test repeats %s", field.Name)
		}
	}
}

// TestSameKey: the same key with the same input answers the same node, marked as replayed, as often
// as it is asked and whoever of the tenant asks; with another input it is refused and nothing is
// told of what it was used for. Another tenant's same key is another key, and so is the same key of
// another mutation.
func TestSameKey(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, m := range repeatables {
		first := m.ask(t, a, a.demo.admin, m.input(a.demo), "key")
		node := first.at(t, "f."+m.result+".id")
		if m.wantReplayed(t, first, false); node == nil || len(first.extensions) != 0 {
			t.Errorf("%s is answered %s, want a new %s and no key, since the client has it", m.field, first.body, m.result)
		}
		before := a.rows(t)
		for range 2 {
			again := m.ask(t, a, a.demo.admin, m.input(a.demo), "key")
			if m.wantReplayed(t, again, true); again.at(t, "f."+m.result+".id") != node {
				t.Errorf("%s with the same key is answered %s, want %v replayed", m.field, again.body, node)
			}
		}
		refused := m.ask(t, a, a.demo.admin, m.other(a.demo), "key")
		if got := strings.Join(refused.list(t, "f.userErrors", "code"), " "); got != "IDEMPOTENCY_KEY_REUSED" || refused.at(t, "f."+m.result) != nil {
			t.Errorf("%s with a used key and another input is answered %s", m.field, refused.body)
		}
		m.wantReplayed(t, refused, false)
		wantNone(t, refused.body, strings.Fields(m.secrets)...)
		if a.rows(t) != before {
			t.Errorf("%s had an effect again", m.field)
		}
		other := m.ask(t, a, a.other.admin, m.input(a.other), "key")
		if m.wantReplayed(t, other, false); other.at(t, "f."+m.result+".id") == node {
			t.Errorf("another tenant's %s with its own key of that name is answered %s", m.field, other.body)
		}
	}
	for _, n := range []*tenant{a.demo, a.other} {
		if r := a.must(t, n.admin, `{ doctor { healthy violations { invariant message ids } } }`, nil); r.at(t, "doctor.healthy") != true {
			t.Errorf("the doctor finds %s", r.body)
		}
	}
}

// TestKeyThatTheServerMade: a client that gave no key is told the one that was made; asking again
// with it finds what was done, and does nothing twice.
func TestKeyThatTheServerMade(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, m := range repeatables {
		if m.field == "placeOrder" { // its client has to bring one: it is made when the form is shown
			continue
		}
		first := m.ask(t, a, a.demo.admin, m.input(a.demo), nil)
		key, _ := first.extensions["idempotencyKey"].(string)
		if m.wantReplayed(t, first, false); key == "" {
			t.Fatalf("%s is answered %s, want a key to ask again with", m.field, first.body)
		}
		before := a.rows(t)
		again := m.ask(t, a, a.demo.admin, m.input(a.demo), key)
		if m.wantReplayed(t, again, true); again.at(t, "f."+m.result+".id") != first.at(t, "f."+m.result+".id") || a.rows(t) != before {
			t.Errorf("%s with the key that was told is answered %s, want %s replayed", m.field, again.body, first.body)
		}
	}
	nobody := allocation(a.demo, 1)
	nobody["customerId"] = absent("cus")
	if r := repeatables[2].ask(t, a, a.demo.admin, nobody, nil); len(r.extensions) != 0 || len(r.list(t, "f.userErrors", "code")) != 1 {
		t.Errorf("an allocation that was refused is answered %s, want a user error and no key", r.body)
	}
}

// TestKeysOfSeveralMutations: where a request has several mutations their keys are told by response
// name, without those that the client chose; where it has one, as text, also beside __typename, in a
// fragment, or when a directive leaves out the rest. Every key told works.
func TestKeysOfSeveralMutations(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	const one, two = `a: createCustomer(input: {name: "One", currency: "EUR"}) { customer { id } userErrors { code } }`,
		`b: createCustomer(input: {name: "Two", currency: "EUR"}) { customer { id } userErrors { code } }`
	const given = `c: createCustomer(input: {name: "Three", currency: "EUR", idempotencyKey: "mine"}) { customer { id } userErrors { code } }`
	for name, c := range map[string]struct{ query, keys string }{
		"two":                      {`mutation {` + one + two + `}`, "a b"},
		"two, and a key given":     {`mutation {` + one + given + two + `}`, "a b"},
		"one, and a key given":     {`mutation {` + given + one + `}`, "a"},
		"two in a fragment":        {`mutation { ...F } fragment F on Mutation {` + one + two + `}`, "a b"},
		"two in inline fragments":  {`mutation { ... {` + one + `} ... on Mutation {` + two + `} }`, "a b"},
		"one in a fragment":        {`mutation { ...F } fragment F on Mutation {` + one + `}`, ""},
		"one beside __typename":    {`mutation { __typename ` + one + ` }`, ""},
		"one, and one left out":    {`mutation {` + one + strings.Replace(two, ") {", ") @skip(if: true) {", 1) + `}`, ""},
		"one, asked for twice":     {`mutation {` + one + one + `}`, ""},
		"one, in a fragment twice": {`mutation { ...F ...F } fragment F on Mutation {` + one + `}`, ""},
	} {
		r := a.must(t, a.demo.admin, c.query, nil)
		told, several := r.extensions["idempotencyKey"].(map[string]any)
		if !several {
			told = map[string]any{"a": r.extensions["idempotencyKey"]}
		}
		if several != (c.keys != "") || several && len(told) != len(strings.Fields(c.keys)) {
			t.Errorf("%s: the keys are told as %v", name, r.extensions)
		}
		for as, text := range map[string]string{"a": "One", "b": "Two"} {
			if told[as] == nil {
				continue
			}
			again := repeatables[0].ask(t, a, a.demo.admin, vars{"name": text, "currency": "EUR"}, told[as])
			if again.at(t, "f.replayed") != true || again.at(t, "f.customer.id") != r.at(t, as+".customer.id") {
				t.Errorf("%s: the key of %s is answered %s", name, as, again.body)
			}
		}
	}
}

// TestLengthOfKeys: a key is 1 to 255 characters, whatever they are; others are refused before
// anything happens.
func TestLengthOfKeys(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, m := range repeatables {
		for _, key := range []string{"", strings.Repeat("k", 256), strings.Repeat("€", 256), "a\x00b"} {
			before := a.rows(t)
			r := m.ask(t, a, a.demo.admin, m.input(a.demo), key)
			if wantCodes(t, r, "BAD_INPUT"); len(r.errors) == 1 && r.errors[0].path() != "f.input.idempotencyKey" {
				t.Errorf("%s with a key of %d bytes is refused at %s", m.field, len(key), r.errors[0].path())
			}
			if a.rows(t) != before {
				t.Errorf("%s with a bad key had an effect", m.field)
			}
		}
	}
	customer := repeatables[0]
	for _, key := range []string{"k", " ", strings.Repeat("€", 255), "a/b\n\"c\""} {
		if r := customer.ask(t, a, a.demo.admin, customer.input(a.demo), key); len(r.errors) > 0 || r.at(t, "f.replayed") != false {
			t.Errorf("the key %q is answered %s", key, r.body)
		}
		if r := customer.ask(t, a, a.demo.admin, customer.input(a.demo), key); len(r.errors) > 0 || r.at(t, "f.replayed") != true {
			t.Errorf("the key %q, again, is answered %s", key, r.body)
		}
	}
}
