package config

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"countersign/internal/auth"
)

// The values of COUNTERSIGN_METRICS_ADDR that are no address.
const (
	MetricsMain = "main"
	MetricsNone = "none"
)

// Metrics is where /metrics is served: MetricsMain, MetricsNone, or the address of its own listener.
// Who says nothing has it beside the playground, and nowhere in production: there the main listener
// is the world's.
func (c Config) Metrics() string {
	switch {
	case c.MetricsAddr != "":
		return c.MetricsAddr
	case c.Env == Development:
		return MetricsMain
	}
	return MetricsNone
}

// JWT are the settings of JWTs; ok is false where none are accepted.
func (c Config) JWT() (s auth.JWTSettings, ok bool) {
	return auth.JWTSettings{
		Issuer: c.JWTIssuer, Audience: c.JWTAudience, JWKSURL: c.JWTKeysURL, Algorithms: c.JWTAlgorithms, Skew: c.JWTSkew, Refresh: c.JWTRefresh,
		TenantClaim: c.JWTTenantClaim, CustomerClaim: c.JWTCustomerClaim, RolesClaim: c.JWTRolesClaim, ScopeClaim: c.JWTScopeClaim,
	}, c.JWTIssuer != ""
}

// Proxies are the networks of COUNTERSIGN_TRUSTED_PROXIES.
func (c Config) Proxies() []netip.Prefix {
	var out []netip.Prefix
	for _, text := range c.TrustedProxies {
		if p, ok := network(text); ok {
			out = append(out, p)
		}
	}
	return out
}

// network reads an address or a network.
func network(text string) (netip.Prefix, bool) {
	if address, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(address, address.BitLen()), true
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err == nil
}

// checkCallers checks who may call, from where and how often.
func (c Config) checkCallers() error {
	for _, origin := range c.CORSOrigins {
		if u, err := url.Parse(origin); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || origin != strings.ToLower(u.Scheme+"://"+u.Host) || strings.Contains(origin, "*") {
			return fmt.Errorf("COUNTERSIGN_CORS_ORIGINS lists origins as a browser sends them, such as https://app.example.com: no path, no capitals, and no *: %q", origin)
		}
	}
	for _, proxy := range c.TrustedProxies {
		if _, ok := network(proxy); !ok {
			return fmt.Errorf("COUNTERSIGN_TRUSTED_PROXIES lists addresses or networks, such as 10.0.0.0/8, not %q", proxy)
		}
	}
	for name, limit := range map[string]float64{"COUNTERSIGN_RATE_LIMIT": c.RateLimit, "COUNTERSIGN_FAILED_AUTH_LIMIT": c.FailedAuthLimit} {
		if limit < 0 || limit > 1e6 || math.IsNaN(limit) {
			return fmt.Errorf("%s is 0 to 1000000 a second", name)
		}
	}
	for name, burst := range map[string]int{"COUNTERSIGN_RATE_BURST": c.RateBurst, "COUNTERSIGN_FAILED_AUTH_BURST": c.FailedAuthBurst} {
		if burst < 0 || burst > 1e7 {
			return fmt.Errorf("%s is 0 to 10000000", name)
		}
	}
	if c.MetricsAddr != "" && c.MetricsAddr != MetricsMain && c.MetricsAddr != MetricsNone {
		if _, _, err := net.SplitHostPort(c.MetricsAddr); err != nil {
			return fmt.Errorf("COUNTERSIGN_METRICS_ADDR is host:port, main or none, not %q", c.MetricsAddr)
		}
	}
	return c.checkJWT()
}

func (c Config) checkJWT() error {
	if c.JWTIssuer == "" {
		for name, value := range map[string]string{"COUNTERSIGN_JWT_AUDIENCE": c.JWTAudience, "COUNTERSIGN_JWT_JWKS_URL": c.JWTKeysURL} {
			if value != "" {
				return fmt.Errorf("%s is set, but COUNTERSIGN_JWT_ISSUER is not", name)
			}
		}
		return nil
	}
	if c.JWTAudience == "" {
		return errors.New("COUNTERSIGN_JWT_AUDIENCE is required with COUNTERSIGN_JWT_ISSUER: without it a token for somebody else would do")
	}
	u, err := url.Parse(c.JWTKeysURL)
	if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
		return errors.New("COUNTERSIGN_JWT_JWKS_URL is an https URL, or an http one on loopback")
	}
	if len(c.JWTAlgorithms) == 0 {
		return errors.New("COUNTERSIGN_JWT_ALGORITHMS is empty")
	}
	for _, algorithm := range c.JWTAlgorithms {
		if !slices.Contains(auth.Algorithms, algorithm) {
			return fmt.Errorf("COUNTERSIGN_JWT_ALGORITHMS lists some of %s, not %q", strings.Join(auth.Algorithms, ", "), algorithm)
		}
	}
	if c.JWTSkew < 0 || c.JWTSkew > 10*time.Minute {
		return errors.New("COUNTERSIGN_JWT_SKEW is 0s to 10m")
	}
	if c.JWTRefresh < time.Second {
		return errors.New("COUNTERSIGN_JWT_REFRESH is at least 1s")
	}
	for name, claim := range map[string]string{
		"COUNTERSIGN_JWT_TENANT_CLAIM": c.JWTTenantClaim, "COUNTERSIGN_JWT_CUSTOMER_CLAIM": c.JWTCustomerClaim, "COUNTERSIGN_JWT_ROLES_CLAIM": c.JWTRolesClaim,
	} {
		if claim == "" {
			return fmt.Errorf("%s is empty", name)
		}
	}
	return nil
}

// loopback says whether a host is this machine.
func loopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}
