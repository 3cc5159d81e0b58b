package graph_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"countersign/graph"
	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/ratelimit"
	"countersign/internal/testdb"
)

// stopped is a clock that stands still, so that no bucket fills while a test runs.
func stopped() func() time.Time {
	now := time.Now()
	return func() time.Time { return now }
}

// TestCallersAreLimited: each caller has requests of its own; one who asks too often is answered 429
// before its query is read, and every answer says how it stands.
func TestCallersAreLimited(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(_ *testdb.DB, o *graph.Options) {
		o.Rates.Callers = ratelimit.New(ratelimit.Policy{Name: "caller", PerSecond: 0.5, Burst: 3}, stopped())
	})
	const query = `{ customers { nodes { id } } }`
	for left := 2; left >= 0; left-- {
		r := a.must(t, a.demo.admin, query, nil)
		if got, want := r.header.Get("RateLimit"), `"caller";r=`+string(rune('0'+left))+`;t=`; !strings.HasPrefix(got, want) || r.header.Get("RateLimit-Policy") != `"caller";q=3;w=6` {
			t.Errorf("%q, %q; want %s…", got, r.header.Get("RateLimit-Policy"), want)
		}
	}
	before := a.rows(t)
	for _, query := range []string{query, `mutation { createCustomer(input: {name: "x", currency: "EUR"}) { replayed } }`, `nonsense`} {
		r := a.do(t, a.demo.admin, query, nil)
		if wantCodes(t, r, "LIMIT_EXCEEDED"); r.status != http.StatusTooManyRequests || r.header.Get("Retry-After") != "2" || r.data != nil {
			t.Errorf("one too many is answered %d %s, to be asked again after %q", r.status, r.body, r.header.Get("Retry-After"))
		}
	}
	if a.rows(t) != before {
		t.Error("a refused request had an effect")
	}
	for _, token := range []string{a.demo.service, a.demo.customer, a.other.admin} {
		a.must(t, token, `{ orders { nodes { id } } }`, nil)
	}
}

// TestFailuresAreLimited: an address that presents tokens which are not good is refused after some,
// a good one included: what is guessed must not be told. An address that a client makes up does not
// help it, and those behind a proxy of ours are told apart.
func TestFailuresAreLimited(t *testing.T) {
	t.Parallel()
	for _, trusted := range []bool{false, true} {
		a := newAPI(t, func(_ *testdb.DB, o *graph.Options) {
			o.Rates.Failures = ratelimit.New(ratelimit.Policy{Name: "failures", PerSecond: 0.1, Burst: 3}, stopped())
			if trusted {
				o.Rates.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
			}
		})
		ask := func(address, token string) response {
			return a.send(t, http.MethodPost, "", token, map[string]string{"Content-Type": "application/json", "X-Forwarded-For": address}, `{"query": "{ customers { nodes { id } } }"}`)
		}
		for i, token := range []string{"cst_nonsense", "", "cst_" + strings.Repeat("0", 64)} {
			if r := ask([]string{"203.0.113.1", "203.0.113.2", "203.0.113.3"}[i], token); r.status != 401 {
				t.Errorf("a failure: %d %s", r.status, r.body)
			}
			if trusted {
				ask("203.0.113.9", token)
			}
		}
		r := ask("203.0.113.9", a.demo.admin)
		if wantCodes(t, r, "LIMIT_EXCEEDED"); r.status != http.StatusTooManyRequests || r.header.Get("Retry-After") != "10" {
			t.Errorf("after three failures: %d %s, %q", r.status, r.body, r.header.Get("Retry-After"))
		}
		if r := ask("203.0.113.1", a.demo.admin); (r.status == 200) != trusted {
			t.Errorf("another address behind a proxy that is trusted (%v): %d %s", trusted, r.status, r.body)
		}
	}
}

// TestUnlimited: where nothing is configured nobody is limited, and no answer speaks of it.
func TestUnlimited(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for range 50 {
		a.do(t, "cst_nonsense", `{ __typename }`, nil)
	}
	if r := a.must(t, a.demo.admin, `{ __typename }`, nil); r.header.Get("RateLimit") != "" || r.header.Get("RateLimit-Policy") != "" {
		t.Errorf("the headers are %v", r.header)
	}
}

// TestJWTCallersAreLimitedApart: the same subject of two tenants is two callers.
func TestJWTCallersAreLimitedApart(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(_ *testdb.DB, o *graph.Options) {
		o.Rates.Callers = ratelimit.New(ratelimit.Policy{PerSecond: 1, Burst: 1}, stopped())
		o.Authenticate = testCallers(func(token string) auth.Caller {
			return auth.Caller{TenantID: parse[domain.TenantID](t, strings.Fields(token)[0]), Subject: strings.Fields(token)[1], Role: domain.RoleAdmin}
		})
	})
	demo, other := a.demo.id.String(), a.other.id.String()
	for _, c := range []struct {
		token string
		want  int
	}{{demo + " anna", 200}, {other + " anna", 200}, {demo + " bob", 200}, {demo + " anna", 429}, {other + " anna", 429}} {
		if r := a.do(t, c.token, `{ customers { nodes { id } } }`, nil); r.status != c.want {
			t.Errorf("%s: %d %s", c.token, r.status, r.body)
		}
	}
}
