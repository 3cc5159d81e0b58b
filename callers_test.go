package main

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// as asks as whoever has a token, with more headers.
func (r *running) as(t *testing.T, token, query string, header ...string) (*http.Response, string) {
	t.Helper()
	text, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/graphql", bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

// field is the string that an answer has under a name.
func field(t *testing.T, body, name string) string {
	t.Helper()
	found := regexp.MustCompile(`"` + name + `":"([^"]+)"`).FindStringSubmatch(body)
	if found == nil {
		t.Fatalf("no %s in %s", name, body)
	}
	return found[1]
}

// provider is an identity provider on loopback: its JWKS, and a token of it with a role.
func provider(t *testing.T) (url string, token func(role string) string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		b64 := base64.RawURLEncoding.EncodeToString
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]any{
			"kty": "RSA", "kid": "1", "use": "sig", "alg": "RS256", "n": b64(key.N.Bytes()), "e": b64(big.NewInt(int64(key.E)).Bytes()),
		}}})
	}))
	t.Cleanup(server.Close)
	return server.URL, func(role string) string {
		token := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims{
			"iss": "https://id.example", "aud": "countersign", "sub": "anna", "exp": time.Now().Add(time.Hour).Unix(), "tenant": "demo", "roles": []string{role},
		})
		token.Header["kid"] = "1"
		text, err := token.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
}

// A token that one server revokes, or rotates, is refused by another server process at its very next
// request: whatever it was answered before is not remembered.
func TestRevocationReachesEveryServerAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	here, there := serve(t, dir), serve(t, dir)
	admin := here.value("token")
	const query = `{ customers { nodes { id } } }`
	for i := range 5 {
		_, body := here.as(t, admin, fmt.Sprintf(`mutation { createAccessToken(input: {role: SERVICE, name: "till %d"}) { secret accessToken { id } } }`, i))
		secret, id := field(t, body, "secret"), field(t, body, "id")
		for range 3 {
			if answer, body := there.as(t, secret, query); answer.StatusCode != http.StatusOK || strings.Contains(body, "errors") {
				t.Fatalf("a new token is answered %d %s", answer.StatusCode, body)
			}
		}
		end := `revokeAccessToken(input: {tokenId: "` + id + `"}) { accessToken { id } }`
		if i == 4 {
			end = `rotateAccessToken(input: {tokenId: "` + id + `"}) { accessToken { id } secret }`
		}
		if _, body := here.as(t, admin, `mutation { `+end+` }`); strings.Contains(body, "errors") {
			t.Fatal(body)
		}
		if answer, body := there.as(t, secret, query); answer.StatusCode != http.StatusUnauthorized || !strings.Contains(body, "UNAUTHENTICATED") {
			t.Errorf("at the next request the other server answers %d %s", answer.StatusCode, body)
		}
	}
}

// With an issuer, limits, origins and metrics configured, a server lets its callers in, says who they
// are in every line of its log, and keeps every secret out of it.
func TestCallersOfAServer(t *testing.T) {
	t.Parallel()
	keys, token := provider(t)
	const webhookSecret = "a webhook secret of this very test"
	s := serve(t, t.TempDir(), "COUNTERSIGN_JWT_ISSUER=https://id.example", "COUNTERSIGN_JWT_AUDIENCE=countersign", "COUNTERSIGN_JWT_JWKS_URL="+keys,
		"COUNTERSIGN_RATE_LIMIT=100", "COUNTERSIGN_CORS_ORIGINS=https://app.example", "COUNTERSIGN_LOG_LEVEL=DEBUG", "COUNTERSIGN_SIMULATED_WEBHOOK_SECRETS="+webhookSecret)
	anna, admin := token("admin"), s.value("token")

	answer, body := s.as(t, anna, `mutation Mint { createAccessToken(input: {role: ADMIN, name: "till", scopes: [READ]}) { accessToken { id createdBy } secret } }`,
		"Origin", "https://app.example", "X-Request-Id", "request-of-anna")
	minted := field(t, body, "secret")
	if by := field(t, body, "createdBy"); by != "jwt:anna" {
		t.Errorf("made by %s", by)
	}
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin": "https://app.example", "RateLimit-Policy": `"caller";q=1000;w=10`, "RateLimit": `"caller";r=999;t=1`,
	} {
		if got := answer.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	_, body = s.as(t, admin, `mutation { createApiKey(input: {customerId: "`+s.value("customer")+`", name: "x", unitPrice: "1"}) { secret } }`)
	apiKey := field(t, body, "secret")
	if _, body := s.as(t, minted, `mutation Sneak { createCustomer(input: {name: "a name that is nobody's business", currency: "EUR", idempotencyKey: "a key that is nobody's business"}) { replayed } }`); !strings.Contains(body, "customers:write") {
		t.Errorf("without its scope: %s", body)
	}
	broken := []string{anna[:len(anna)-8] + "AAAAAAAA", admin[:len(admin)-1], "a token that was mistyped", token("owner")}
	for _, bad := range broken {
		if answer, body := s.as(t, bad, `{ customers { nodes { id } } }`); answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("%d %s", answer.StatusCode, body)
		}
	}
	s.as(t, admin, `{ nonsense(secret: "`+apiKey+`") }`)
	for range 2 {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/webhooks/payments/simulated", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("webhook-signature", "v1,"+webhookSecret)
		if answer, err := http.DefaultClient.Do(request); err != nil || answer.StatusCode != http.StatusBadRequest || answer.Header.Get("RateLimit") != "" {
			t.Errorf("a webhook: %v, %v", answer, err)
		} else {
			_ = answer.Body.Close()
		}
	}
	status, text := s.get("/metrics")
	for _, series := range []string{
		`countersign_graphql_root_fields_total{code="OK",field="createAccessToken",type="Mutation"} 1`, `countersign_graphql_root_fields_total{code="FORBIDDEN",field="createCustomer",type="Mutation"} 1`,
		`countersign_http_request_duration_seconds_count{method="POST",route="/graphql",status="401"} 4`, `countersign_transactions_total{kind="write",outcome="done"}`,
		`countersign_database_connections_max 20`, `countersign_join_waiting{group="jwts"} 0`, `countersign_join_waiting{group="access_tokens"} 0`, `go_goroutines`,
	} {
		if status != http.StatusOK || !strings.Contains(text, series) {
			t.Errorf("/metrics answers %d without %s", status, series)
		}
	}
	s.stop(t, syscall.SIGTERM)
	log := s.log.String()
	for _, secret := range append(broken, anna, admin, minted, apiKey, webhookSecret, "nobody's business") {
		for _, part := range []string{secret, secret[len(secret)/2:]} {
			if strings.Contains(log, part) {
				t.Errorf("the log holds %q:\n%s", part, log)
			}
		}
	}
	for _, want := range []string{
		`msg=request method=POST path=/graphql status=200`, `operation=Mint mutations=`, `request_id=request-of-anna`, `caller=jwt:anna role=ADMIN`, `FORBIDDEN`,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %s:\n%s", want, log)
		}
	}
	if lines := strings.Count(log, "msg=request method=POST path=/graphql "); lines != 8 {
		t.Errorf("%d lines for 8 requests:\n%s", lines, log)
	}
	for _, line := range strings.Split(log, "\n") {
		if strings.Contains(line, "request_id=request-of-anna") && !strings.Contains(line, "caller=jwt:anna") {
			t.Errorf("a line of the request does not say who asked: %s", line)
		}
	}
}

// In production nobody finds the metrics on the listener that is the world's, unless the operator says
// so; on a listener of their own they are alone.
func TestMetricsInProduction(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	production := []string{"COUNTERSIGN_ENV=production", "COUNTERSIGN_SIMULATED_WEBHOOK_SECRETS=a secret of the test 1"}
	for value, want := range map[string]int{"": 404, "none": 404, "127.0.0.1:0": 404, "main": 200} {
		s := serve(t, dir, append(production, "COUNTERSIGN_METRICS_ADDR="+value)...)
		if status, _ := s.get("/metrics"); status != want {
			t.Errorf("COUNTERSIGN_METRICS_ADDR=%s: %d, want %d", value, status, want)
		}
		s.stop(t, syscall.SIGTERM)
		if url := regexp.MustCompile(`http://127[^"]+/metrics`).FindString(s.log.String()); (url != "") != (value == "127.0.0.1:0") {
			t.Errorf("COUNTERSIGN_METRICS_ADDR=%s: said %q", value, url)
		}
	}
}

// tokensFromTheShell: a token is narrowed, listed with its scopes, and rotated from the command line.
func tokensFromTheShell(t *testing.T, s *running, must func(args ...string) string, refused func(want string, args ...string)) {
	t.Helper()
	create := []string{"token", "create", "--tenant", "acme", "--role", "service", "--name", "meter"}
	refused("--scope", append(create, "--scope", "everything")...)
	refused("--expires", append(create, "--expires", "-1h")...)
	old := must(append(create, "--scope", "read,usage:write", "--expires", "24h")...)
	const query = `{ customers { nodes { id } } }`
	const mutation = `mutation { createCustomer(input: {name: "x", currency: "EUR"}) { replayed } }`
	answered := func(token, query, want string) {
		t.Helper()
		if _, body := s.as(t, token, query); !strings.Contains(body, want) {
			t.Errorf("answered %s, want %s", body, want)
		}
	}
	answered(old, query, `"nodes"`)
	answered(old, mutation, "takes the scope customers:write")
	line := regexp.MustCompile(`(?m)^(tok_\w+) .* read,usage:write +meter .*$`).FindStringSubmatch(must("token", "list", "--tenant", "acme"))
	if line == nil || !strings.Contains(line[0], " command ") {
		t.Fatalf("the list shows %q", line)
	}
	refused("--grace", "token", "rotate", "--tenant", "acme", line[1], "--grace", "-1h")
	refused("no such token", "token", "rotate", "--tenant", "acme", "tok_00000000000000000000000000")
	next := must("token", "rotate", "--tenant", "acme", line[1], "--grace", "24h")
	for _, token := range []string{old, next} {
		answered(token, query, `"nodes"`)
		answered(token, mutation, "takes the scope customers:write")
	}
	refused("was rotated before, to tok_", "token", "rotate", "--tenant", "acme", line[1])
	successor := regexp.MustCompile(`(?m)^(tok_\w+) .* ` + line[1] + `$`).FindStringSubmatch(must("token", "list", "--tenant", "acme"))
	if successor == nil {
		t.Fatal("the list does not show what the successor replaces")
	}
	last := must("token", "rotate", "--tenant", "acme", successor[1])
	answered(next, query, "UNAUTHENTICATED")
	answered(last, query, `"nodes"`)
}
