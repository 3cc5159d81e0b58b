package auth_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/testdb"
	"countersign/internal/txn"
)

func roles(names ...string) map[string]any { return map[string]any{"roles": names} }

// wantNobody fails unless a JWT is answered just as an access token that is not good.
func wantNobody(t *testing.T, j *auth.JWTs, token, why string) {
	t.Helper()
	c, err := j.Authenticate(context.Background(), token)
	if codeOf(err) != domain.CodeUnauthenticated || err.Error() != "the access token is not valid" || c != (auth.Caller{}) {
		t.Errorf("a JWT that %s is %+v, %v; want UNAUTHENTICATED, and no word of why", why, c, err)
	}
}

// TestClaims: a JWT says who calls: the tenant by its handle or id, the role from a path of claims
// among roles of others, for a customer its customer, and what it is narrowed to.
func TestClaims(t *testing.T) {
	t.Parallel()
	o, i := newOffice(t, txn.Settings{}), newIssuer(t)
	j := i.accept(t, o, txn.Settings{})
	other, otherCustomer := newTenant(t, txn.New(o.db.Pool, txn.Settings{}), "other")
	for name, c := range map[string]struct {
		change jwt.MapClaims
		want   auth.Caller
	}{
		"an admin":                {nil, auth.Caller{TenantID: o.tenant, Role: domain.RoleAdmin}},
		"by the tenant's id":      {jwt.MapClaims{"tenant": other.String()}, auth.Caller{TenantID: other, Role: domain.RoleAdmin}},
		"a service":               {jwt.MapClaims{"realm_access": roles("service")}, auth.Caller{TenantID: o.tenant, Role: domain.RoleService}},
		"a role alone":            {jwt.MapClaims{"realm_access": map[string]any{"roles": "service"}}, auth.Caller{TenantID: o.tenant, Role: domain.RoleService}},
		"one role twice":          {jwt.MapClaims{"realm_access": roles("admin", "x", "admin")}, auth.Caller{TenantID: o.tenant, Role: domain.RoleAdmin}},
		"an admin's customer":     {jwt.MapClaims{"app": map[string]any{"customer": "nonsense"}}, auth.Caller{TenantID: o.tenant, Role: domain.RoleAdmin}},
		"a customer":              {jwt.MapClaims{"realm_access": roles("customer"), "app": map[string]any{"customer": o.customer.String()}}, auth.Caller{TenantID: o.tenant, Role: domain.RoleCustomer, CustomerID: o.customer}},
		"another's customer":      {jwt.MapClaims{"tenant": "other", "realm_access": roles("customer"), "app": map[string]any{"customer": otherCustomer.String()}}, auth.Caller{TenantID: other, Role: domain.RoleCustomer, CustomerID: otherCustomer}},
		"scopes":                  {jwt.MapClaims{"scope": "openid read orders:write"}, auth.Caller{TenantID: o.tenant, Role: domain.RoleAdmin, Scopes: domain.NarrowTo(domain.ScopeRead, domain.ScopeOrdersWrite)}},
		"scopes of others":        {jwt.MapClaims{"scope": "openid profile"}, auth.Caller{TenantID: o.tenant, Role: domain.RoleAdmin, Scopes: domain.NarrowTo()}},
		"several audiences":       {jwt.MapClaims{"aud": []string{"shop", "countersign"}}, auth.Caller{TenantID: o.tenant, Role: domain.RoleAdmin}},
		"expired within the skew": {jwt.MapClaims{"exp": time.Now().Add(-30 * time.Second).Unix()}, auth.Caller{TenantID: o.tenant, Role: domain.RoleAdmin}},
		"not before, within it":   {jwt.MapClaims{"nbf": time.Now().Add(30 * time.Second).Unix(), "iat": time.Now().Add(30 * time.Second).Unix()}, auth.Caller{TenantID: o.tenant, Role: domain.RoleAdmin}},
	} {
		c.want.Subject = "anna"
		if got, err := j.Authenticate(t.Context(), good(t, c.change)); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
	c, err := j.Authenticate(t.Context(), good(t, nil))
	if op, _ := c.Operation("m", "", nil, nil); err != nil || op.By != "jwt:anna" {
		t.Errorf("a row says that it was made by %q, %v", op.By, err)
	}
}

// TestNobody: whatever is wrong with a JWT, it is nobody's, and the answer is the same.
func TestNobody(t *testing.T) {
	t.Parallel()
	o, i := newOffice(t, txn.Settings{}), newIssuer(t)
	j := i.accept(t, o, txn.Settings{})
	_, foreign := newTenant(t, txn.New(o.db.Pool, txn.Settings{}), "other")
	ago, ahead := time.Now().Add(-2*time.Minute).Unix(), time.Now().Add(2*time.Minute).Unix()
	customer := func(id string) jwt.MapClaims {
		return jwt.MapClaims{"realm_access": roles("customer"), "app": map[string]any{"customer": id}}
	}
	for why, change := range map[string]jwt.MapClaims{
		"has another issuer": {"iss": "https://evil.example"}, "has no issuer": {"iss": nil},
		"is for another audience": {"aud": "shop"}, "has no audience": {"aud": nil},
		"has expired": {"exp": ago}, "does not expire": {"exp": nil}, "expires at no time": {"exp": "soon"},
		"is not good yet": {"nbf": ahead}, "was issued in the future": {"iat": ahead},
		"has no subject": {"sub": nil}, "has an empty subject": {"sub": ""},
		"has no tenant": {"tenant": nil}, "has an unknown tenant": {"tenant": "nobody"}, "has an absent tenant": {"tenant": domain.NewID[domain.TenantID]().String()},
		"has a list of tenants": {"tenant": []string{"office"}}, "has no roles": {"realm_access": nil}, "has no role of ours": {"realm_access": roles("owner", "Admin", "")},
		"has two roles": {"realm_access": roles("admin", "service")}, "has roles elsewhere": {"realm_access": nil, "roles": []string{"admin"}},
		"is of no customer": customer(""), "is of a customer that does not exist": customer(domain.NewID[domain.CustomerID]().String()),
		"is of another tenant's customer": customer(foreign.String()), "is of another kind of id": customer(o.tenant.String()),
	} {
		wantNobody(t, j, good(t, change), why)
	}
	key := rsaKeys()[0]
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	asPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	whole := good(t, nil)
	parts := strings.Split(whole, ".")
	for why, token := range map[string]string{
		"is signed with the public key as a secret": sign(t, jwt.SigningMethodHS256, asPEM, "first", claims(nil), nil),
		"is signed with a symmetric key of the set": sign(t, jwt.SigningMethodHS256, []byte("a shared secret of 32 characters"), "shared", claims(nil), nil),
		"has no signature":                          sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, "first", claims(nil), nil),
		"lost its signature":                        parts[0] + "." + parts[1] + ".",
		"is signed by another":                      sign(t, jwt.SigningMethodRS256, rsaKeys()[1], "first", claims(nil), nil),
		"has an algorithm that is not listed":       sign(t, jwt.SigningMethodRS512, key, "first", claims(nil), nil),
		"names another kind of key":                 sign(t, jwt.SigningMethodES256, newECKey(t), "first", claims(nil), nil),
		"names no key":                              sign(t, jwt.SigningMethodRS256, key, "", claims(nil), map[string]any{"kid": nil}),
		"names a key by a number":                   sign(t, jwt.SigningMethodRS256, key, "", claims(nil), map[string]any{"kid": 1}),
		"demands what nobody understands":           sign(t, jwt.SigningMethodRS256, key, "first", claims(nil), map[string]any{"crit": []string{"exp"}}),
		"is huge":                                   good(t, jwt.MapClaims{"pad": strings.Repeat("x", 20<<10)}),
		"is empty":                                  "", "is dots": "..", "has four parts": whole + ".x", "is no JSON": "e30.e30.e30", "is padded": parts[0] + "." + parts[1] + "." + parts[2] + "=",
		"was edited": parts[0] + "." + strings.TrimRight(parts[1], "A") + "B" + "." + parts[2],
	} {
		wantNobody(t, j, token, why)
	}
	if _, err := j.Authenticate(t.Context(), whole); err != nil {
		t.Errorf("a good one: %v", err)
	}
	a := auth.Authenticator{Tokens: o.Tokens}
	if c, err := a.Authenticate(t.Context(), whole); codeOf(err) != domain.CodeUnauthenticated || c != (auth.Caller{}) {
		t.Errorf("where no JWT is accepted: %+v, %v", c, err)
	}
	a.JWTs = j
	opaque, row := o.issue(t, auth.NewToken{Role: domain.RoleAdmin})
	if c, err := a.Authenticate(t.Context(), opaque); err != nil || c.TokenID != row.ID {
		t.Errorf("an access token beside JWTs: %+v, %v", c, err)
	}
}

// TestSubjects: what stands in rows and log lines is safe and bounded, and no two subjects are spelt
// alike.
func TestSubjects(t *testing.T) {
	t.Parallel()
	o, i := newOffice(t, txn.Settings{}), newIssuer(t)
	j := i.accept(t, o, txn.Settings{})
	seen := map[string]string{}
	for _, subject := range []string{"anna", "a b", "a%20b", "a+b", "a\nb", "ä", "auth0|5f7c", strings.Repeat("x", 128), strings.Repeat("x", 129), strings.Repeat("x", 130), strings.Repeat("\n", 5000)} {
		c, err := j.Authenticate(t.Context(), good(t, jwt.MapClaims{"sub": subject}))
		if err != nil {
			t.Fatal(err)
		}
		by := c.By()
		if other, twice := seen[by]; twice || len(by) > 4+128 || strings.ContainsAny(by, " \n\"") {
			t.Errorf("the subject %q is spelt %q, as %q is", subject, by, other)
		}
		seen[by] = subject
	}
}

// TestKeysAreCached: the keys are fetched once, however many tokens come; of keys that are not known
// a storm costs the issuer one fetch more, and nobody is told anything else.
func TestKeysAreCached(t *testing.T) {
	t.Parallel()
	o, i := newOffice(t, txn.Settings{}), newIssuer(t)
	j := i.accept(t, o, txn.Settings{})
	for range 50 {
		if _, err := j.Authenticate(t.Context(), good(t, nil)); err != nil {
			t.Fatal(err)
		}
	}
	before := i.fetches.Load()
	if before != 1 {
		t.Errorf("%d fetches for one key", before)
	}
	done := make(chan struct{})
	storm := func(n int) {
		for k := range n {
			token := sign(t, jwt.SigningMethodRS256, rsaKeys()[0], fmt.Sprint("unknown ", n, k), claims(nil), nil)
			go func() { wantNobody(t, j, token, "names an unknown key"); done <- struct{}{} }()
		}
		for range n {
			<-done
		}
	}
	storm(100)
	storm(50)
	if got := i.fetches.Load() - before; got != 1 {
		t.Errorf("150 unknown keys cost %d fetches, want one", got)
	}
	if _, err := j.Authenticate(t.Context(), good(t, nil)); err != nil {
		t.Errorf("a good one after the storm: %v", err)
	}
}

// TestRotation: a key that the issuer adds is found with the first token that names it; one that it
// drops is good no more once the set was fetched again.
func TestRotation(t *testing.T) {
	t.Parallel()
	o, i := newOffice(t, txn.Settings{}), newIssuer(t)
	j := i.accept(t, o, txn.Settings{})
	if _, err := j.Authenticate(t.Context(), good(t, nil)); err != nil {
		t.Fatal(err)
	}
	second := newECKey(t)
	next := sign(t, jwt.SigningMethodES256, second, "second", claims(nil), nil)
	i.change(func() { i.keys["second"] = second })
	for _, token := range []string{next, good(t, nil)} {
		if _, err := j.Authenticate(t.Context(), token); err != nil {
			t.Errorf("while both keys are published: %v", err)
		}
	}
	if n := i.fetches.Load(); n != 2 {
		t.Errorf("%d fetches for two keys", n)
	}

	// By the clock, which is quick here.
	quick := i.accept(t, o, txn.Settings{}, func(s *auth.JWTSettings) { s.Refresh = 20 * time.Millisecond })
	known := func(token string) bool { _, err := quick.Authenticate(t.Context(), token); return err == nil }
	testdb.Eventually(t, func() bool { return known(next) && known(good(t, nil)) })
	i.change(func() { delete(i.keys, "first") })
	testdb.Eventually(t, func() bool { return !known(good(t, nil)) })
	if !known(next) {
		t.Error("the key that stayed is not known any more")
	}
	// What cannot be read changes nothing: the keys that are known stay known.
	fetched := i.fetches.Load()
	for why, answer := range map[string]func(w http.ResponseWriter){
		"an error":   func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
		"no JSON":    func(w http.ResponseWriter) { _, _ = w.Write([]byte("<html>")) },
		"no set":     func(w http.ResponseWriter) { _, _ = w.Write([]byte("{}")) },
		"too much":   func(w http.ResponseWriter) { _, _ = w.Write([]byte(`{"keys":[]` + strings.Repeat(" ", 1<<20) + `}`)) },
		"a redirect": func(w http.ResponseWriter) { w.Header().Set("Location", "/"); w.WriteHeader(http.StatusFound) },
		"broken half": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "900")
			_, _ = w.Write([]byte(`{"keys":[`))
		},
	} {
		i.change(func() { i.answer = answer })
		fetched = i.fetches.Load()
		testdb.Eventually(t, func() bool { return i.fetches.Load() > fetched+1 })
		if !known(next) {
			t.Errorf("after %s the key is not known any more", why)
		}
	}
	i.change(func() { i.answer = func(w http.ResponseWriter) { _, _ = w.Write([]byte(`{"keys":[]}`)) } })
	testdb.Eventually(t, func() bool { return !known(next) })
}

// TestNoKeys: while no key is known it is the server that cannot answer, not the token that is bad,
// and a slow issuer holds a request for two seconds at most.
func TestNoKeys(t *testing.T) {
	t.Parallel()
	o, i := newOffice(t, txn.Settings{}), newIssuer(t)
	i.hold = make(chan struct{})
	j := i.accept(t, o, txn.Settings{})
	answered := make(chan error, 20)
	for range cap(answered) {
		go func() {
			_, err := j.Authenticate(context.Background(), good(t, nil))
			answered <- err
		}()
	}
	for range cap(answered) { // while the issuer's answer is still held
		if err := <-answered; codeOf(err) != domain.CodeUnavailable {
			t.Errorf("while the keys are not known: %v, want UNAVAILABLE", err)
		}
	}
	if n := i.fetches.Load(); n != 1 {
		t.Errorf("%d fetches at once", n)
	}
	close(i.hold)
	testdb.Eventually(t, func() bool { _, err := j.Authenticate(t.Context(), good(t, nil)); return err == nil })
}

// TestClaimsShareOneStatement: the tenants and customers of requests that come while one is looked up
// are looked up by one statement together, each for itself.
func TestClaimsShareOneStatement(t *testing.T) {
	t.Parallel()
	o, i := newOffice(t, txn.Settings{}), newIssuer(t)
	j := i.accept(t, o, txn.Settings{})
	if _, err := j.Authenticate(t.Context(), good(t, nil)); err != nil {
		t.Fatal(err)
	}
	other, _ := newTenant(t, txn.New(o.db.Pool, txn.Settings{}), "other")
	gate, sent := o.db.Gate(t, "EveryClaimedTenant"), o.db.Sent()
	answers := make(chan string, 31)
	ask := func(tenant string) {
		c, err := j.Authenticate(context.Background(), good(t, jwt.MapClaims{"tenant": tenant}))
		answers <- fmt.Sprint(tenant, " ", c.TenantID, " ", codeOf(err))
	}
	go ask("office")
	gate.Await(t, 1)
	names := []string{"office", "other", "nobody"}
	for k := range 30 {
		go ask(names[k%3])
	}
	testdb.Eventually(t, func() bool { return j.Waiting() == 30 })
	gate.Open()
	count := map[string]int{}
	for range 31 {
		count[<-answers]++
	}
	if count[fmt.Sprint("office ", o.tenant, " ")] != 11 || count[fmt.Sprint("other ", other, " ")] != 10 || count[fmt.Sprint("nobody ", domain.TenantID{}, " UNAUTHENTICATED")] != 10 {
		t.Errorf("answered %v", count)
	}
	if statements := sent(); len(statements) != 2 {
		t.Errorf("31 requests took the statements %v", statements)
	}
}
