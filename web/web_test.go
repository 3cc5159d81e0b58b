package web

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
)

var testSettings = Settings{
	Endpoint: "/graphql",
	Token:    "secret-token",
	Tabs: []Tab{
		{Title: "PlaceOrder", Query: "# A query Comment\nmutation PlaceOrder {\n  __typename\n}\n", Variables: `{"a": "</script>&\u2028"}`},
	},
}

func TestPages(t *testing.T) {
	t.Parallel()
	script := firstAsset(t, ".js")
	tests := []struct {
		name, method, path string
		status             int
		contentType        string
		cacheControl       string
	}{
		{"the page", "GET", "/", 200, "text/html; charset=utf-8", "no-store"},
		{"the settings", "GET", "/playground.json", 200, "application/json", "no-store"},
		{"the licences", "GET", "/licenses.md", 200, "text/plain; charset=utf-8", "no-store"},
		{"a script", "GET", script, 200, "text/javascript; charset=utf-8", "public, max-age=31536000, immutable"},
		{"a style sheet", "GET", firstAsset(t, ".css"), 200, "text/css; charset=utf-8", "public, max-age=31536000, immutable"},
		{"a font", "GET", firstAsset(t, ".woff2"), 200, "font/woff2", "public, max-age=31536000, immutable"},
		{"the icon", "GET", firstAsset(t, ".svg"), 200, "image/svg+xml", "public, max-age=31536000, immutable"},
		{"HEAD of the page", "HEAD", "/", 200, "text/html; charset=utf-8", "no-store"},
		{"HEAD of a script", "HEAD", script, 200, "text/javascript; charset=utf-8", "public, max-age=31536000, immutable"},
		{"a second address of the page", "GET", "/index.html", 404, "text/plain; charset=utf-8", ""},
		{"a directory", "GET", "/assets/", 404, "text/plain; charset=utf-8", ""},
		{"a stored name", "GET", script + ".gz", 404, "text/plain; charset=utf-8", ""},
		{"a climb", "GET", "/assets/../web.go", 404, "text/plain; charset=utf-8", ""},
		{"an unknown path", "GET", "/favicon.ico", 404, "text/plain; charset=utf-8", ""},
		{"an unknown path, posted to", "POST", "/nowhere", 404, "text/plain; charset=utf-8", ""},
		{"the page, posted to", "POST", "/", 405, "text/plain; charset=utf-8", ""},
		{"the settings, deleted", "DELETE", "/playground.json", 405, "text/plain; charset=utf-8", ""},
		{"a script, put", "PUT", script, 405, "text/plain; charset=utf-8", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			response, body := get(t, test.method, test.path, nil)
			type answer struct {
				Status                    int
				ContentType, CacheControl string
			}
			got := answer{response.StatusCode, response.Header.Get("Content-Type"), response.Header.Get("Cache-Control")}
			if want := (answer{test.status, test.contentType, test.cacheControl}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
			if test.status == 405 && response.Header.Get("Allow") != "GET, HEAD" {
				t.Errorf("Allow: %q", response.Header.Get("Allow"))
			}
			if test.method == "HEAD" && len(body) > 0 {
				t.Errorf("HEAD answered with %d bytes of body", len(body))
			}
			if test.method == "HEAD" && response.ContentLength <= 0 {
				t.Error("HEAD answered without a length")
			}
			for name, want := range map[string]string{
				"X-Content-Type-Options":       "nosniff",
				"X-Frame-Options":              "DENY",
				"Referrer-Policy":              "no-referrer",
				"Cross-Origin-Resource-Policy": "same-origin",
				"Cross-Origin-Opener-Policy":   "same-origin",
				"Content-Security-Policy":      contentSecurityPolicy,
			} {
				if got := response.Header.Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		})
	}
}

// The policy may name this origin, nothing, data: images and inline styles. Inline script, eval and hosts would defeat it.
func TestContentSecurityPolicyNamesNoOtherOrigin(t *testing.T) {
	t.Parallel()
	directives := map[string]string{}
	for _, directive := range strings.Split(contentSecurityPolicy, ";") {
		name, sources, _ := strings.Cut(strings.TrimSpace(directive), " ")
		directives[name] = sources
	}
	want := map[string]string{
		"default-src":     "'none'",
		"script-src":      "'self'",
		"style-src":       "'self' 'unsafe-inline'",
		"font-src":        "'self'",
		"img-src":         "'self' data:",
		"connect-src":     "'self'",
		"worker-src":      "'self'",
		"base-uri":        "'none'",
		"form-action":     "'none'",
		"frame-ancestors": "'none'",
	}
	if !maps.Equal(directives, want) {
		t.Errorf("got %v\nwant %v", directives, want)
	}
}

func TestAcceptEncoding(t *testing.T) {
	t.Parallel()
	script := firstAsset(t, ".js")
	for _, test := range []struct {
		headers []string
		gzipped bool
	}{
		{nil, false},
		{[]string{""}, false},
		{[]string{"gzip"}, true},
		{[]string{"gzip, deflate, br, zstd"}, true},
		{[]string{"br", "GZIP"}, true},
		{[]string{"br;q=1.0, gzip;q=0.001"}, true},
		{[]string{"x-gzip"}, true},
		{[]string{"*"}, true},
		{[]string{"br, *;q=0.1"}, true},
		{[]string{"gzip;q=0"}, false},
		{[]string{"gzip ; Q=0.000"}, false},
		{[]string{"gzip;q=0, *"}, false},
		{[]string{"*, gzip;q=0"}, false},
		{[]string{"*;q=0, gzip"}, true},
		{[]string{"*;q=0"}, false},
		{[]string{"gzip;q=high"}, false},
		{[]string{"gzip;q=NaN"}, false},
		{[]string{"gzip;q=2"}, false},
		{[]string{"identity"}, false},
		{[]string{"br, deflate"}, false},
		{[]string{"gzipped"}, false},
	} {
		t.Run(strings.Join(test.headers, "+"), func(t *testing.T) {
			t.Parallel()
			response, body := get(t, "GET", script, http.Header{"Accept-Encoding": test.headers})
			if got := response.Header.Get("Content-Encoding"); (got == "gzip") != test.gzipped || (got != "" && got != "gzip") {
				t.Fatalf("Content-Encoding: %q, want gzip: %t", got, test.gzipped)
			}
			if response.ContentLength != int64(len(body)) {
				t.Errorf("Content-Length: %d of %d bytes", response.ContentLength, len(body))
			}
			if got := response.Header.Get("Vary"); got != "Accept-Encoding" {
				t.Errorf("Vary: %q", got)
			}
			if want := plain(t, script); test.gzipped {
				if !bytes.Equal(decompress(t, body), want) {
					t.Error("the compressed form is not the file")
				}
			} else if !bytes.Equal(body, want) {
				t.Error("the plain form is not the file")
			}
		})
	}
}

func TestConditionalRequests(t *testing.T) {
	t.Parallel()
	script := firstAsset(t, ".js")
	gzipped := http.Header{"Accept-Encoding": {"gzip"}}
	first, _ := get(t, "GET", script, gzipped)
	other, _ := get(t, "GET", script, nil)
	etag := first.Header.Get("ETag")
	if etag == "" || etag == other.Header.Get("ETag") {
		t.Fatalf("ETags %q and %q: want one for each form", etag, other.Header.Get("ETag"))
	}

	again, body := get(t, "GET", script, http.Header{"Accept-Encoding": {"gzip"}, "If-None-Match": {etag}})
	if again.StatusCode != http.StatusNotModified || len(body) != 0 {
		t.Errorf("same form again: %d with %d bytes, want 304 with none", again.StatusCode, len(body))
	}
	for name, want := range map[string]string{"ETag": etag, "Cache-Control": immutable, "Vary": "Accept-Encoding"} {
		if got := again.Header.Get(name); got != want {
			t.Errorf("%s of the 304: %q, want %q", name, got, want)
		}
	}
	if changed, _ := get(t, "GET", script, http.Header{"If-None-Match": {etag}}); changed.StatusCode != http.StatusOK {
		t.Errorf("the other form: %d, want 200", changed.StatusCode)
	}
	for _, path := range []string{"/", "/playground.json"} {
		if response, _ := get(t, "GET", path, gzipped); response.Header.Get("ETag") != "" {
			t.Errorf("%s is not stored, and has an ETag", path)
		}
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	_, body := get(t, "GET", "/playground.json", nil)
	if bytes.ContainsAny(body, "<>&\u2028") {
		t.Errorf("characters that a browser could take for markup: %s", body)
	}
	var got map[string]any
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	tab := testSettings.Tabs[0]
	want := map[string]any{
		"endpoint": "/graphql",
		"token":    "secret-token",
		"tabs":     []any{map[string]any{"title": tab.Title, "query": tab.Query, "variables": tab.Variables}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	for _, path := range []string{"/", firstAsset(t, ".js")} {
		if _, body := get(t, "GET", path, nil); bytes.Contains(body, []byte(testSettings.Token)) {
			t.Errorf("%s carries the token", path)
		}
	}
}

func TestSettingsWithoutTabs(t *testing.T) {
	t.Parallel()
	handler, err := Playground(Settings{Endpoint: "/graphql"})
	if err != nil {
		t.Fatal(err)
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequest("GET", "/playground.json", nil))
	if got, want := recorder.Body.String(), `{"endpoint":"/graphql","token":"","tabs":[]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTabs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		tab     Tab
		refused string // "" for none
	}{
		{"named after its operation", Tab{"Invoices", "query Invoices { __typename }", ""}, ""},
		{"after a comment that names another", Tab{"Invoices", "# not the query Orders\nquery Invoices { __typename }", "{}"}, ""},
		{"a title of its own", Tab{"All invoices", "query Invoices { __typename }", ""}, "the title is not the name of its operation"},
		{"an operation without a name", Tab{"Invoices", "{ __typename }", ""}, "the title is not the name of its operation"},
		{"variables cut short", Tab{"Invoices", "query Invoices { __typename }", `{"a":`}, "the variables are not a JSON object"},
		{"variables that are a list", Tab{"Invoices", "query Invoices { __typename }", `[]`}, "the variables are not a JSON object"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := Playground(Settings{Tabs: []Tab{test.tab}})
			if (err == nil) != (test.refused == "") || err != nil && !strings.Contains(err.Error(), test.refused) {
				t.Errorf("got %v, want %q", err, test.refused)
			}
		})
	}
}

// What makes a browser fetch: attributes of the page, url() of style sheets, calls of scripts with an address written out.
var (
	pageReference  = regexp.MustCompile(`(?:src|href)="([^"]*)"`)
	styleReference = regexp.MustCompile(`(?:url\(|@import\s+)["']?([^"')]+)`)
)

func remoteCall(script string) string {
	for _, call := range []string{"import(", "fetch(", "importScripts(", "Worker(", "WebSocket(", "EventSource(", "sendBeacon(", ".src=", "from"} {
		for _, quote := range []string{`"`, `'`, "`"} {
			for _, scheme := range []string{"//", "http://", "https://", "ws://", "wss://"} {
				if strings.Contains(script, call+quote+scheme) {
					return call + quote + scheme
				}
			}
		}
	}
	return ""
}

// Every address that the page would load on its own is one of the embedded files.
func TestNothingIsLoadedFromElsewhere(t *testing.T) {
	t.Parallel()
	files, err := embedded()
	if err != nil {
		t.Fatal(err)
	}
	references := 0
	for name := range files {
		var found [][]string
		content := string(plain(t, name))
		switch path.Ext(name) {
		case ".js":
			if call := remoteCall(content); call != "" {
				t.Errorf("%s calls out: %s", name, call)
			}
		case ".css":
			found = styleReference.FindAllStringSubmatch(content, -1)
		case "":
			found = pageReference.FindAllStringSubmatch(content, -1)
		}
		for _, match := range found {
			reference := match[1]
			if strings.HasPrefix(reference, "data:image/") || strings.HasPrefix(reference, "#") {
				continue
			}
			references++
			if _, ok := files[path.Join(path.Dir(name), reference)]; !ok {
				t.Errorf("%s refers to %s, which is not embedded", name, reference)
			}
		}
	}
	if references < 20 {
		t.Errorf("found %d references; the page alone has more", references)
	}
}

// An inline script, or a handler in an attribute, would be refused by the policy and leave an empty page.
func TestPageHasNoInlineScript(t *testing.T) {
	t.Parallel()
	page := string(plain(t, "/"))
	if inline := regexp.MustCompile(`(?i)<script[^>]*>\s*[^<\s]|<script(?:\s+(?:type|crossorigin)(?:="[^"]*")?)*\s*>|\son[a-z]+=|javascript:`).FindString(page); inline != "" {
		t.Errorf("inline script: %s", inline)
	}
}

// A real server, because only there does HEAD lose its body. It lives as long as the tests.
var testServer = sync.OnceValues(func() (*httptest.Server, error) {
	handler, err := Playground(testSettings)
	return httptest.NewServer(handler), err
})

// Left to itself the transport would ask for gzip, and hide that it got it.
var transport = &http.Transport{DisableCompression: true}

func get(t *testing.T, method, path string, header http.Header) (*http.Response, []byte) {
	t.Helper()
	server, err := testServer()
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequest(method, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range header {
		request.Header[name] = values
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, body
}

var embedded = sync.OnceValues(readDist)

// plain is an embedded file as it was before compression.
func plain(t *testing.T, name string) []byte {
	t.Helper()
	files, err := embedded()
	if err != nil {
		t.Fatal(err)
	}
	gzipped, err := dist.ReadFile(files[name].embedded)
	if err != nil {
		t.Fatal(err)
	}
	return decompress(t, gzipped)
}

func decompress(t *testing.T, gzipped []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(gzipped))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// firstAsset is the path of the alphabetically first asset with that extension.
func firstAsset(t *testing.T, ext string) string {
	t.Helper()
	entries, err := dist.ReadDir("dist/assets")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(entry.Name(), ".gz"); ok && path.Ext(name) == ext {
			return "/assets/" + name
		}
	}
	t.Fatalf("no %s in dist/assets", ext)
	return ""
}
