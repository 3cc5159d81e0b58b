package graph_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"countersign/graph"
)

// TestMalformedBodies: a body is one JSON object with each key once, spelt right, and nothing behind
// it: where two programs could read it differently it is refused with 400 and has no effect.
func TestMalformedBodies(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	const create = `mutation ($name: String!) { createCustomer(input: {name: $name, currency: \"EUR\"}) { replayed } }`
	post := func(name, body string) exchange { return exchange{name, "POST", "", nil, body, 400, "BAD_INPUT"} }
	a.run(t, []exchange{
		post("null", `null`), post("a string", `"{ __typename }"`), post("a number", `1`), post("only space", ` `), post("an empty object", `{}`),
		post("a batch of one", `[`+jsonBody+`]`),
		post("a batch of ten", `[`+strings.Repeat(jsonBody+",", 9)+jsonBody+`]`),
		post("a key twice", `{"query": "{ __typename }", "query": "mutation { createCustomer(input: {name: \"Intruder\", currency: \"EUR\"}) { replayed } }"}`),
		post("a key twice, the second escaped", `{"query": "{ __typename }", "quer\u0079": "mutation { createCustomer(input: {name: \"Intruder\", currency: \"EUR\"}) { replayed } }"}`),
		post("a variable twice", `{"query": "`+create+`", "variables": {"name": "Intruder", "name": "Another"}}`),
		post("a key twice, deep inside", `{"query": "mutation ($i: CreateCustomerInput!) { createCustomer(input: $i) { replayed } }", "variables": {"i": {"name": "A", "currency": "EUR", "name": "B"}}}`),
		post("an upper-case key", `{"Query": "{ __typename }"}`),
		post("an upper-case key beside the right one", `{"query": "{ __typename }", "QUERY": "`+strings.ReplaceAll(create, "$name", "x")+`"}`),
		post("upper-case variables", `{"query": "{ __typename }", "Variables": {"name": "Intruder"}}`),
		post("another case of operationName", `{"query": "{ __typename }", "operationname": "x"}`),
		post("bytes behind it", jsonBody+` x`), post("a second object behind it", jsonBody+jsonBody), post("a closing brace too many", jsonBody+`}`),
		post("a byte order mark", "\xef\xbb\xbf"+jsonBody),
		post("invalid UTF-8", `{"query": "{ __typename }", "variables": {"x": "`+"\xff"+`"}}`),
		post("half a character in a variable", `{"query": "`+create+`", "variables": {"name": "\ud800"}}`),
		post("half a character in a key", `{"query": "`+create+`", "variables": {"name": "Intruder", "\udc00": 1}}`),
		post("half a character in the document", `{"query": "mutation { createCustomer(input: {name: \"\\ud800\", currency: \"EUR\"}) { replayed } }"}`),
		post("halves in the wrong order", `{"query": "`+create+`", "variables": {"name": "\ude00\ud83d"}}`),
		post("half a character at the end", `{"query": "{ __typename }", "variables": {"x": "\ud83d"}}`),
		post("half an escape", `{"query": "{ __typename }", "variables": {"x": "\ud8"}}`),
		post("broken off", jsonBody[:len(jsonBody)-2]), post("single quotes", `{'query': '{ __typename }'}`), post("a comma too many", `{"query": "{ __typename }",}`),
		post("no query", `{"variables": {}}`), post("a query that is no string", `{"query": {"x": 1}}`), post("a null query", `{"query": null}`),
		post("variables that are a list", `{"query": "{ __typename }", "variables": []}`), post("variables that are text", `{"query": "{ __typename }", "variables": "{}"}`),
		post("extensions that are text", `{"query": "{ __typename }", "extensions": ""}`), post("an operationName that is a number", `{"query": "{ __typename }", "operationName": 1}`),
		post("nested too deeply", `{"query": "{ __typename }", "variables": {"x": `+strings.Repeat("[", 300_000)+strings.Repeat("]", 300_000)+`}}`),
		post("nested too deeply and not closed", strings.Repeat(`{"a":`, 170_000)),
	})
}

// TestWellFormedBodies: what looks odd and is right is answered.
func TestWellFormedBodies(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	post := func(name, body string) exchange { return exchange{name, "POST", "", nil, body, 200, ""} }
	a.run(t, []exchange{
		post("space around", " \n"+`{"query": "{ __typename }"}`+"\r\n "),
		post("nulls", `{"query": "{ __typename }", "variables": null, "operationName": null, "extensions": null}`),
		post("keys nobody knows", `{"query": "{ __typename }", "id": 1, "extensions": {"a": {"b": [1, 2.5, null]}}}`),
		post("a whole character of two halves", `{"query": "{ __typename }", "variables": {"x": "\ud83d\ude00 \\ud800"}}`),
		post("exactly as large as may be", `{"query": "{ __typename }"}`+strings.Repeat(" ", graph.MaxBody-len(`{"query": "{ __typename }"}`))),
		{"a byte more", "POST", "", nil, `{"query": "{ __typename }"}` + strings.Repeat(" ", graph.MaxBody+1-len(`{"query": "{ __typename }"}`)), 413, "LIMIT_EXCEEDED"},
	})
}

// TestGet: a query may be a GET; its parameters are read as strictly as a body.
func TestGet(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	query := "query=" + url.QueryEscape(`query ($n: Int) { invoices(first: $n) { nodes { id } } }`)
	get := func(name, parameters string, status int, code string) exchange {
		return exchange{name, "GET", "/?" + parameters, nil, "", status, code}
	}
	variables := func(json string) string { return query + "&variables=" + url.QueryEscape(json) }
	a.run(t, []exchange{
		get("a query", query, 200, ""), get("with variables", variables(`{"n": 1}`), 200, ""), get("with null variables", variables(`null`), 200, ""),
		get("nothing", "", 400, "BAD_INPUT"), get("the query twice", query+"&"+query, 400, "BAD_INPUT"),
		get("variables twice", variables(`{"n": 1}`)+"&variables={}", 400, "BAD_INPUT"), get("a variable twice", variables(`{"n": 1, "n": 2}`), 400, "BAD_INPUT"),
		get("variables that are no JSON", variables(`{"n": 1`), 400, "BAD_INPUT"), get("variables with something behind", variables(`{"n": 1} 2`), 400, "BAD_INPUT"),
		get("variables that are a list", variables(`[1]`), 400, "BAD_INPUT"), get("half a character", variables(`{"n": 1, "x": "\ud800"}`), 400, "BAD_INPUT"),
		get("invalid UTF-8 in the document", "query="+url.QueryEscape("{ __typename } #\xff"), 400, "BAD_INPUT"),
		get("invalid UTF-8 in a variable", variables("{\"x\": \"\xff\"}"), 400, "BAD_INPUT"),
	})
	r := a.send(t, "GET", "/?"+variables(`{"n": 1}`), a.demo.admin, nil, "")
	if got := r.list(t, "invoices.nodes", "id"); len(got) != 1 || got[0] != a.demo.invoiceID {
		t.Errorf("the GET is answered %s, want the first invoice", r.body)
	}
}

// TestBrokenBodyWithASecret: a body that cannot be read may hold a password or a card: wherever it
// breaks, nothing of it stands in the answer or in the log.
func TestBrokenBodyWithASecret(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	const secret = "hunter2-hunter2"
	for _, body := range []string{
		`{"query": "{ __typename }", "password": "` + secret, `{"query": "{ __typename }", "password": ` + secret + `}`, secret,
		`{"` + secret + `": 1, "` + secret + `": 2}`, `{"query": "{ __typename }"}` + secret, `["` + secret + `"]`, `"` + secret + `"`,
		`{"query": "{ __typename }", "variables": "` + secret + `"}`, `{"query": "{ __typename }", "operationName": ["` + secret + `"]}`,
		`{"query": ["` + secret + `"]}`, `{"query": "{ __typename }", "x": "\ud800` + secret + `"}`, `{"query": "{ __typename }", "x": "` + secret + "\xff" + `"}`,
		`{"query": "{ __typename }", "x": ` + strings.Repeat("[", 200) + `"` + secret + `"`,
	} {
		r := a.send(t, http.MethodPost, "", a.demo.admin, header("Content-Type", "application/json"), body)
		if wantCodes(t, r, "BAD_INPUT"); r.status != http.StatusBadRequest {
			t.Errorf("%s is answered %d", body, r.status)
		}
		wantNone(t, r.body, "hunter", a.demo.admin)
	}
	a.send(t, http.MethodGet, "/?query={__typename}&variables="+secret, a.demo.admin, nil, "")
	wantNone(t, a.log.String(), "hunter", a.demo.admin)
}
