package graph_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// exchange is an HTTP request, and what its answer must and must not be.
type exchange struct {
	name, method, path string
	header             map[string]string // beside a content type of application/json, if there is a body
	body               string
	status             int
	code               string // of the one error; "" for none
}

const (
	jsonBody     = `{"query": "mutation { createCustomer(input: {name: \"Intruder\", currency: \"EUR\"}) { replayed } }"}`
	readBody     = `{"query": "{ customers { nodes { name } } }"}`
	graphqlMedia = "application/graphql-response+json"
)

func header(pairs ...string) map[string]string {
	out := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	return out
}

// run makes the exchanges as an admin and fails where an answer is another. No request here may
// have an effect, read a cookie or be answered with leave for other origins.
func (a *api) run(t *testing.T, exchanges []exchange) {
	before := a.rows(t)
	for _, x := range exchanges {
		t.Run(x.name, func(t *testing.T) {
			sent := header()
			if x.body != "" {
				sent["Content-Type"] = "application/json"
			}
			for name, value := range x.header {
				sent[name] = value
			}
			r := a.send(t, x.method, x.path, a.demo.admin, sent, x.body)
			if r.status != x.status {
				t.Errorf("the status is %d, want %d: %s", r.status, x.status, r.body)
			}
			if x.method != http.MethodHead {
				wantCodes(t, r, strings.Fields(x.code)...)
			}
			if x.code != "" && strings.Contains(r.body, `"data"`) && r.status != http.StatusOK {
				t.Errorf("a refused request answers with data: %s", r.body)
			}
			for _, name := range []string{"Set-Cookie", "Access-Control-Allow-Origin", "Access-Control-Allow-Credentials"} {
				if r.header.Get(name) != "" {
					t.Errorf("the answer has the header %s: %s", name, r.header.Get(name))
				}
			}
			if r.status == http.StatusMethodNotAllowed && r.header.Get("Allow") == "" {
				t.Error("405 does not say what is allowed")
			}
			if a.rows(t) != before {
				t.Fatal("the request had an effect")
			}
		})
	}
}

// TestWhatABrowserCanSend: a mutation is a POST of application/json and nothing else: what a form or
// a link of a foreign page can send is refused before it is read.
func TestWhatABrowserCanSend(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	query := "/?query=" + url.QueryEscape(`mutation { createCustomer(input: {name: "Intruder", currency: "EUR"}) { replayed } }`)
	form := "query=" + url.QueryEscape(`mutation { createCustomer(input: {name: "Intruder", currency: "EUR"}) { replayed } }`)
	multipart := "--x\r\nContent-Disposition: form-data; name=\"operations\"\r\n\r\n" + jsonBody + "\r\n--x\r\nContent-Disposition: form-data; name=\"map\"\r\n\r\n{}\r\n--x--\r\n"
	a.run(t, []exchange{
		{"GET of a mutation", "GET", query, nil, "", 405, "BAD_INPUT"},
		{"GET of a mutation by its name", "GET", query + "&operationName=", nil, "", 405, "BAD_INPUT"},
		{"GET of a mutation beside a query", "GET", "/?operationName=m&query=" + url.QueryEscape(`query q { __typename } mutation m { createCustomer(input: {name: "Intruder", currency: "EUR"}) { replayed } }`), nil, "", 405, "BAD_INPUT"},
		{"urlencoded", "POST", "", header("Content-Type", "application/x-www-form-urlencoded"), form, 415, "BAD_INPUT"},
		{"urlencoded with the query in the URL", "POST", query, header("Content-Type", "application/x-www-form-urlencoded"), form, 415, "BAD_INPUT"},
		{"multipart, as case 41", "POST", "", header("Content-Type", "multipart/form-data; boundary=x"), multipart, 415, "BAD_INPUT"},
		{"text/plain", "POST", "", header("Content-Type", "text/plain"), jsonBody, 415, "BAD_INPUT"},
		{"text/plain that says JSON", "POST", "", header("Content-Type", "text/plain; application/json"), jsonBody, 415, "BAD_INPUT"},
		{"no content type", "POST", "", header("Content-Type", ""), jsonBody, 415, "BAD_INPUT"},
		{"application/graphql", "POST", "", header("Content-Type", "application/graphql"), `mutation { __typename }`, 415, "BAD_INPUT"},
		{"another charset", "POST", "", header("Content-Type", "application/json; charset=utf-16"), jsonBody, 415, "BAD_INPUT"},
		{"an Accept nobody serves", "POST", "", header("Accept", "text/html"), jsonBody, 406, "BAD_INPUT"},
		{"an Accept that excludes all", "POST", "", header("Accept", "*/*;q=0"), jsonBody, 406, "BAD_INPUT"},
		{"PUT", "PUT", "", nil, jsonBody, 405, "BAD_INPUT"},
		{"PATCH", "PATCH", "", nil, jsonBody, 405, "BAD_INPUT"},
		{"DELETE", "DELETE", "", nil, jsonBody, 405, "BAD_INPUT"},
		{"HEAD", "HEAD", "/?query={__typename}", nil, "", 405, ""},
		{"a preflight", "OPTIONS", "", header("Origin", "https://elsewhere.example", "Access-Control-Request-Method", "POST"), "", 405, "BAD_INPUT"},
		{"a foreign origin that reads", "POST", "", header("Origin", "https://elsewhere.example", "Cookie", "session=1"), readBody, 200, ""},
	})
}

// TestCookieIsNoToken: a cookie, whatever it holds, is not looked at.
func TestCookieIsNoToken(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	r := a.send(t, "POST", "", "", header("Content-Type", "application/json", "Origin", "https://elsewhere.example",
		"Cookie", "token="+a.demo.admin+"; Authorization=Bearer "+a.demo.admin), jsonBody)
	if wantCodes(t, r, "UNAUTHENTICATED"); r.status != 401 {
		t.Errorf("answered %d, want 401", r.status)
	}
}

// TestMediaTypes: the answer's media type is what the client accepts; a document that cannot be run
// is 400 under GraphQL's own media type and 200 under application/json, and never holds data.
func TestMediaTypes(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, c := range []struct {
		accept, query, media string
		status               int
	}{
		{"", "{ __typename }", "application/json", 200},
		{"*/*", "{ __typename }", "application/json", 200},
		{"application/*", "{ __typename }", "application/json", 200},
		{graphqlMedia, "{ __typename }", graphqlMedia, 200},
		{"application/json;q=0.5, " + graphqlMedia, "{ __typename }", graphqlMedia, 200},
		{graphqlMedia + ";q=0.5, application/json", "{ __typename }", "application/json", 200},
		{graphqlMedia + ", text/html", "{ nothing }", graphqlMedia, 400},
		{"application/json", "{ nothing }", "application/json", 200},
		{graphqlMedia, "{ syntax", graphqlMedia, 400},
		{graphqlMedia, "query ($id: ID!) { node(id: $id) { id } }", graphqlMedia, 400},
		{graphqlMedia, `{ node(id: "x") { id } }`, graphqlMedia, 200}, // a field's error, not the request's
	} {
		sent := header("Content-Type", "application/json; charset=UTF-8")
		if c.accept != "" {
			sent["Accept"] = c.accept
		}
		r := a.send(t, "POST", "", a.demo.admin, sent, `{"query": `+quoted(t, c.query)+`}`)
		if got := r.header.Get("Content-Type"); r.status != c.status || got != c.media+"; charset=utf-8" {
			t.Errorf("%q under %q is %d %s, want %d %s", c.query, c.accept, r.status, got, c.status, c.media)
		}
		if runs := !strings.Contains(c.query, "nothing") && !strings.Contains(c.query, "syntax") && !strings.Contains(c.query, "$"); strings.Contains(r.body, `"data"`) != runs {
			t.Errorf("%q is answered %s", c.query, r.body)
		}
		if r.header.Get("Cache-Control") != "no-store" || r.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("the headers are %v", r.header)
		}
	}
}

// TestTokens: without a token, and with one that is not good, the answer is 401, says which scheme
// to use, and tells nothing of why the token is not good.
func TestTokens(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	typo := a.demo.admin[:67] + "0"
	if typo == a.demo.admin {
		typo = a.demo.admin[:67] + "1"
	}
	for name, authorization := range map[string]string{
		"none": "", "another scheme": "Basic " + a.demo.admin, "no scheme": a.demo.admin, "no token": "Bearer ", "a typo": "Bearer " + typo,
		"nonsense": "Bearer x", "another prefix": "Bearer sk_" + a.demo.admin[4:], "two": "Bearer " + a.demo.admin + ", Bearer " + a.demo.admin,
	} {
		sent := header("Content-Type", "application/json")
		if authorization != "" {
			sent["Authorization"] = authorization
		}
		r := a.send(t, "POST", "", "", sent, readBody)
		if wantCodes(t, r, "UNAUTHENTICATED"); r.status != 401 || !strings.HasPrefix(r.header.Get("WWW-Authenticate"), "Bearer ") {
			t.Errorf("%s: answered %d with WWW-Authenticate %q", name, r.status, r.header.Get("WWW-Authenticate"))
		}
	}
	if r := a.send(t, "POST", "", "", header("Content-Type", "application/json", "Authorization", "bearer "+a.demo.admin), readBody); r.status != 200 || len(r.errors) > 0 {
		t.Errorf("the scheme's case matters: %d %s", r.status, r.body)
	}
	wantNone(t, a.log.String(), a.demo.admin, typo)
}
