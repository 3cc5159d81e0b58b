package config

import (
	"strings"
	"testing"
	"time"
)

// jwt is a configuration that accepts an issuer's JWTs, with changes.
func jwt(changes ...string) []string {
	return append([]string{
		"COUNTERSIGN_JWT_ISSUER=https://id.example", "COUNTERSIGN_JWT_AUDIENCE=countersign", "COUNTERSIGN_JWT_JWKS_URL=https://id.example/jwks",
	}, changes...)
}

// Nothing of it is on by default; what is configured is read as it is meant.
func TestCallers(t *testing.T) {
	t.Parallel()
	c, err := Load(nil)
	if _, on := c.JWT(); err != nil || on || c.RateLimit != 0 || c.FailedAuthLimit != 0 || len(c.CORSOrigins) != 0 || len(c.Proxies()) != 0 || c.Metrics() != MetricsMain {
		t.Errorf("by default: %+v, %v", c, err)
	}
	c, err = Load(jwt("COUNTERSIGN_JWT_SKEW=5s", "COUNTERSIGN_JWT_ALGORITHMS=RS256,ES384", "COUNTERSIGN_JWT_ROLES_CLAIM=realm_access.roles"))
	s, on := c.JWT()
	if err != nil || !on || s.Skew != 5*time.Second || len(s.Algorithms) != 2 || s.RolesClaim != "realm_access.roles" || s.ScopeClaim != "" || s.Refresh != 15*time.Minute {
		t.Errorf("JWTs: %+v, %v, %v", s, on, err)
	}
	production := []string{"COUNTERSIGN_ENV=production", "COUNTERSIGN_SIMULATED_WEBHOOK_SECRETS=a secret of the test 1"}
	for value, want := range map[string]string{"": MetricsNone, "main": MetricsMain, "none": MetricsNone, "127.0.0.1:9090": "127.0.0.1:9090"} {
		if c, err := Load(append(production, "COUNTERSIGN_METRICS_ADDR="+value)); err != nil || c.Metrics() != want {
			t.Errorf("metrics %q in production: %q, %v", value, c.Metrics(), err)
		}
	}
	c, err = Load([]string{
		"COUNTERSIGN_TRUSTED_PROXIES=10.0.0.0/8,192.0.2.7,fd00::/8", "COUNTERSIGN_CORS_ORIGINS=https://app.example,http://localhost:5173", "COUNTERSIGN_RATE_LIMIT=2.5", "COUNTERSIGN_RATE_BURST=9",
	})
	if err != nil || len(c.Proxies()) != 3 || c.Proxies()[1].String() != "192.0.2.7/32" || len(c.CORSOrigins) != 2 || c.RateLimit != 2.5 || c.RateBurst != 9 {
		t.Errorf("%+v, %v", c, err)
	}
	for _, url := range []string{"http://127.0.0.1:8080/jwks", "http://localhost/jwks", "http://[::1]:1/jwks"} {
		if _, err := Load(jwt("COUNTERSIGN_JWT_JWKS_URL=" + url)); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// A bad value is one line that names the variable.
func TestCallersRefused(t *testing.T) {
	t.Parallel()
	for _, environ := range [][]string{
		{"COUNTERSIGN_CORS_ORIGINS=*"}, {"COUNTERSIGN_CORS_ORIGINS=https://app.example/"}, {"COUNTERSIGN_CORS_ORIGINS=https://*.example"}, {"COUNTERSIGN_CORS_ORIGINS=null"},
		{"COUNTERSIGN_CORS_ORIGINS=app.example"}, {"COUNTERSIGN_CORS_ORIGINS=https://App.example"}, {"COUNTERSIGN_CORS_ORIGINS=https://u:p@app.example"}, {"COUNTERSIGN_CORS_ORIGINS=ftp://app.example"},
		{"COUNTERSIGN_TRUSTED_PROXIES=everybody"}, {"COUNTERSIGN_TRUSTED_PROXIES=10.0.0.0/99"},
		{"COUNTERSIGN_RATE_LIMIT=-1"}, {"COUNTERSIGN_RATE_LIMIT=fast"}, {"COUNTERSIGN_RATE_LIMIT=NaN"}, {"COUNTERSIGN_RATE_BURST=-1"}, {"COUNTERSIGN_RATE_BURST=1.5"},
		{"COUNTERSIGN_FAILED_AUTH_LIMIT=-1"}, {"COUNTERSIGN_FAILED_AUTH_BURST=-1"}, {"COUNTERSIGN_METRICS_ADDR=9090"},
		{"COUNTERSIGN_JWT_AUDIENCE=countersign"}, {"COUNTERSIGN_JWT_JWKS_URL=https://id.example/jwks"},
		jwt("COUNTERSIGN_JWT_AUDIENCE="), jwt("COUNTERSIGN_JWT_JWKS_URL="), jwt("COUNTERSIGN_JWT_JWKS_URL=http://id.example/jwks"), jwt("COUNTERSIGN_JWT_JWKS_URL=file:///jwks"),
		jwt("COUNTERSIGN_JWT_ALGORITHMS=HS256"), jwt("COUNTERSIGN_JWT_ALGORITHMS=RS256,none"), jwt("COUNTERSIGN_JWT_ALGORITHMS=RS256,HS512"), jwt("COUNTERSIGN_JWT_ALGORITHMS=rs256"),
		jwt("COUNTERSIGN_JWT_SKEW=-1s"), jwt("COUNTERSIGN_JWT_SKEW=1h"), jwt("COUNTERSIGN_JWT_REFRESH=0s"), jwt("COUNTERSIGN_JWT_REFRESH=never"),
	} {
		name, _, _ := strings.Cut(environ[len(environ)-1], "=")
		if _, err := Load(environ); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", environ[len(environ)-1], err)
		}
	}
	if text := Describe(); !strings.Contains(text, "COUNTERSIGN_JWT_ROLES_CLAIM") || !strings.Contains(text, "COUNTERSIGN_RATE_LIMIT") {
		t.Error("--help does not tell of them")
	}
}
