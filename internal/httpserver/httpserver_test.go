package httpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"countersign/internal/accesslog"
	"countersign/internal/metrics"
	"countersign/internal/requestid"
)

// newTestServer serves a handler at /graphql and returns the URL and the log.
func newTestServer(t *testing.T, s *Server) (string, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	s.Logger = slog.New(accesslog.LogHandler{Handler: requestid.LogHandler{Handler: slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})}})
	if s.Ready == nil {
		s.Ready = func(context.Context) error { return nil }
	}
	server := httptest.NewServer(s.routes())
	t.Cleanup(server.Close)
	return server.URL, log
}

// ask sends a request with headers, and returns the answer with its body read.
func ask(t *testing.T, method, url string, header map[string]string) *http.Response {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		request.Header.Set(name, value)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	return answer
}

// TestCORS: pages of a listed origin may call, after a preflight; those of any other get no header
// that says so, whatever it looks like. Credentials are never allowed, and other routes take no part.
func TestCORS(t *testing.T) {
	t.Parallel()
	url, _ := newTestServer(t, &Server{
		Origins: []string{"https://app.example", "http://localhost:5173"},
		GraphQL: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusTeapot) }),
	})
	const allow = "Access-Control-Allow-Origin"
	preflight := func(path, origin string) *http.Response {
		return ask(t, http.MethodOptions, url+path, map[string]string{"Origin": origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type"})
	}
	for _, origin := range []string{"https://app.example", "http://localhost:5173"} {
		r := preflight("/graphql", origin)
		for name, want := range map[string]string{
			allow: origin, "Access-Control-Allow-Methods": "GET, POST", "Access-Control-Allow-Headers": "Authorization, Content-Type, X-Request-Id",
			"Access-Control-Max-Age": "7200", "Access-Control-Allow-Credentials": "",
		} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("preflight of %s: %s is %q, want %q", origin, name, got, want)
			}
		}
		if r.StatusCode != http.StatusNoContent || !strings.Contains(strings.Join(r.Header.Values("Vary"), ","), "Origin") {
			t.Errorf("preflight of %s: %d, Vary %q", origin, r.StatusCode, r.Header.Values("Vary"))
		}
		r = ask(t, http.MethodPost, url+"/graphql", map[string]string{"Origin": origin})
		if r.StatusCode != http.StatusTeapot || r.Header.Get(allow) != origin || r.Header.Get("Access-Control-Allow-Credentials") != "" ||
			r.Header.Get("Access-Control-Expose-Headers") != "X-Request-Id, RateLimit, RateLimit-Policy, Retry-After" || r.Header.Get("Vary") != "Origin" {
			t.Errorf("a call of %s: %d %v", origin, r.StatusCode, r.Header)
		}
	}
	for _, origin := range []string{"https://evil.example", "https://app.example.evil.example", "http://app.example", "https://app.example:443", "https://APP.example", "null", "*", "https://app.example/"} {
		for _, r := range []*http.Response{preflight("/graphql", origin), ask(t, http.MethodPost, url+"/graphql", map[string]string{"Origin": origin, "Cookie": "token=x"})} {
			for name := range r.Header {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("%s of %s is answered %s: %s", r.Request.Method, origin, name, r.Header.Get(name))
				}
			}
			if !strings.Contains(strings.Join(r.Header.Values("Vary"), ","), "Origin") {
				t.Errorf("%s of %s does not vary by origin", r.Request.Method, origin)
			}
		}
	}
	if r := preflight("/livez", "https://app.example"); r.Header.Get(allow) != "" {
		t.Errorf("/livez takes part: %v", r.Header)
	}
	none, _ := newTestServer(t, &Server{GraphQL: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMethodNotAllowed) })})
	if r := ask(t, http.MethodOptions, none+"/graphql", map[string]string{"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}); r.Header.Get(allow) != "" || r.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("where none is listed: %d %v", r.StatusCode, r.Header)
	}
}

// TestAccessLog: each request leaves one line, with what was answered and who asked; lines that are
// written under it say the same. What the client sent beside the path stands in none.
func TestAccessLog(t *testing.T) {
	t.Parallel()
	type seen struct {
		route, method string
		status        int
	}
	requests := make(chan seen, 10)
	s := &Server{Observe: func(route, method string, status int, took time.Duration) {
		if took < 0 {
			t.Errorf("took %s", took)
		}
		requests <- seen{route, method, status}
	}}
	s.GraphQL = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e := accesslog.From(r.Context())
		e.Caller(func() (tenant, caller, role string) { return "ten_1", "tok_1", "ADMIN" })
		e.Operation("Make")
		e.Ran(accesslog.Mutation{Field: "createCustomer", Key: "abc", Codes: []string{"BUSY"}})
		s.Logger.WarnContext(r.Context(), "something of its own")
		w.WriteHeader(http.StatusAccepted)
		_, _ = w.Write([]byte("12345"))
	})
	url, log := newTestServer(t, s)
	r := ask(t, http.MethodPost, url+"/graphql?query=hidden", map[string]string{"Authorization": "Bearer hidden", "X-Request-Id": "my-request-1"})
	if got := <-requests; got != (seen{"/graphql", "POST", 202}) || r.StatusCode != 202 {
		t.Errorf("observed %+v", got)
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 2 || strings.Contains(log.String(), "hidden") {
		t.Fatalf("the log is %s", log)
	}
	for i, text := range lines {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"request_id": "my-request-1", "tenant": "ten_1", "caller": "tok_1", "role": "ADMIN"}
		if i == 1 {
			for name, value := range map[string]any{"level": "INFO", "msg": "request", "method": "POST", "path": "/graphql", "status": 202.0, "bytes": 5.0, "operation": "Make"} {
				want[name] = value
			}
			if line["took"] == nil || !strings.Contains(text, `"mutations":[{"field":"createCustomer","key":"abc","codes":["BUSY"]}]`) {
				t.Errorf("the line is %s", text)
			}
		}
		for name, value := range want {
			if line[name] != value {
				t.Errorf("%s is %v, want %v: %s", name, line[name], value, text)
			}
		}
	}
	log.Reset()
	ask(t, http.MethodGet, url+"/livez", nil)
	ask(t, http.MethodGet, url+"/"+strings.Repeat("x", 3000), nil)
	<-requests
	if got := <-requests; got.route != "" || got.status != 404 {
		t.Errorf("an unknown path is observed as %+v", got)
	}
	if text := log.String(); !strings.Contains(text, `"level":"DEBUG","msg":"request","method":"GET","path":"/livez"`) || len(text) > 1500 || strings.Count(text, "\n") != 2 {
		t.Errorf("the log is %s", text)
	}
}

// TestMetricsHaveTheirPlace: /metrics is on the main listener only where it was put there, and on its
// own listener there is nothing else.
func TestMetricsHaveTheirPlace(t *testing.T) {
	t.Parallel()
	m := metrics.New()
	m.Request("/graphql", "POST", 200, time.Millisecond)
	nothing := http.NotFoundHandler()
	without, _ := newTestServer(t, &Server{GraphQL: nothing})
	with, _ := newTestServer(t, &Server{GraphQL: nothing, Metrics: m.Handler()})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	go func() { ServeMetrics(ctx, listener, m.Handler(), slog.New(slog.DiscardHandler)); close(served) }()
	own := "http://" + listener.Addr().String()
	for url, want := range map[string]int{
		without + "/metrics": 404, with + "/metrics": 200, own + "/metrics": 200, own + "/graphql": 404, own + "/livez": 404,
	} {
		if got := ask(t, http.MethodGet, url, nil).StatusCode; got != want {
			t.Errorf("%s: %d, want %d", url, got, want)
		}
	}
	stop()
	<-served
}
