package auth_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"countersign/internal/auth"
	"countersign/internal/txn"
)

// issuer is an identity provider with a JWKS on loopback.
type issuer struct {
	url     string
	fetches atomic.Int64
	hold    chan struct{} // not nil: an answer waits until it is closed

	mu     sync.Mutex
	keys   map[string]crypto.Signer
	answer func(w http.ResponseWriter) // instead of the keys
}

var rsaKeys = sync.OnceValue(func() []*rsa.PrivateKey {
	keys := make([]*rsa.PrivateKey, 2)
	for i := range keys {
		keys[i], _ = rsa.GenerateKey(rand.Reader, 2048)
	}
	return keys
})

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{keys: map[string]crypto.Signer{"first": rsaKeys()[0]}}
	server := httptest.NewServer(i)
	t.Cleanup(server.Close)
	i.url = server.URL
	return i
}

// ServeHTTP publishes the keys.
func (i *issuer) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	i.fetches.Add(1)
	i.mu.Lock()
	hold, answer := i.hold, i.answer
	i.mu.Unlock()
	if hold != nil {
		<-hold
	}
	if answer != nil {
		answer(w)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"keys": i.jwks()})
}

func (i *issuer) jwks() (out []map[string]any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	b64 := base64.RawURLEncoding.EncodeToString
	out = append(out, map[string]any{"kty": "unheard of", "kid": "strange"}, map[string]any{"kty": "oct", "kid": "shared", "k": b64([]byte("a shared secret of 32 characters"))})
	for kid, key := range i.keys {
		switch k := key.Public().(type) {
		case *rsa.PublicKey:
			out = append(out, map[string]any{"kty": "RSA", "kid": kid, "use": "sig", "n": b64(k.N.Bytes()), "e": b64(big.NewInt(int64(k.E)).Bytes())})
		case *ecdsa.PublicKey:
			point, _ := k.Bytes()
			out = append(out, map[string]any{"kty": "EC", "crv": "P-256", "kid": kid, "x": b64(point[1:33]), "y": b64(point[33:])})
		}
	}
	return out
}

// change changes what the issuer publishes.
func (i *issuer) change(f func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f()
}

// accept makes JWTs that accept this issuer's tokens.
func (i *issuer) accept(t *testing.T, o *office, settings txn.Settings, tune ...func(*auth.JWTSettings)) *auth.JWTs {
	t.Helper()
	s := auth.JWTSettings{
		Issuer: "https://id.example", Audience: "countersign", JWKSURL: i.url, Algorithms: []string{"RS256", "ES256"},
		Skew: time.Minute, Refresh: time.Hour, TenantClaim: "tenant", CustomerClaim: "app.customer", RolesClaim: "realm_access.roles", ScopeClaim: "scope",
	}
	for _, f := range tune {
		f(&s)
	}
	if settings.Logger == nil {
		settings.Logger = txn.New(nil, txn.Settings{}).Logger // says nothing
	}
	return auth.NewJWTs(t.Context(), txn.New(o.db.Pool, settings), s, settings.Logger)
}

// claims are a good token's; with changes some of them. A nil one is left out.
func claims(change jwt.MapClaims) jwt.MapClaims {
	c := jwt.MapClaims{
		"iss": "https://id.example", "aud": "countersign", "sub": "anna", "exp": time.Now().Add(5 * time.Minute).Unix(), "iat": time.Now().Unix(),
		"tenant": "office", "realm_access": map[string]any{"roles": []string{"offline_access", "admin"}},
	}
	for name, value := range change {
		if c[name] = value; value == nil {
			delete(c, name)
		}
	}
	return c
}

// sign makes a token. header changes its header; a nil value leaves a name out.
func sign(t *testing.T, method jwt.SigningMethod, key any, kid string, c jwt.MapClaims, header map[string]any) string {
	t.Helper()
	token := jwt.NewWithClaims(method, c)
	token.Header["kid"] = kid
	for name, value := range header {
		if token.Header[name] = value; value == nil {
			delete(token.Header, name)
		}
	}
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// good is a token of the issuer's first key.
func good(t *testing.T, change jwt.MapClaims) string {
	t.Helper()
	return sign(t, jwt.SigningMethodRS256, rsaKeys()[0], "first", claims(change), nil)
}

func newECKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
