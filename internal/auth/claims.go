package auth

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/golang-jwt/jwt/v5"

	"countersign/internal/domain"
)

// claimed is what the claims of a request name: a tenant by its id or its handle, and a customer.
type claimed struct {
	tenant   domain.TenantID
	handle   string
	customer domain.CustomerID
}

// read says what the claims mean. Its errors are for the log alone.
func (s JWTSettings) read(claims jwt.MapClaims) (c Caller, asked claimed, err error) {
	subject, _ := claims["sub"].(string)
	if subject == "" {
		return c, asked, errors.New("it has no subject")
	}
	c.Subject = safeSubject(subject)
	tenant, _ := at(claims, s.TenantClaim).(string)
	switch id, err := domain.ParseID[domain.TenantID](tenant); {
	case err == nil:
		asked.tenant = id
	case tenant == "" || len(tenant) > 40: // the longest handle
		return c, asked, errors.New("it names no tenant")
	default:
		asked.handle = tenant
	}
	if c.Role, err = roleOf(words(at(claims, s.RolesClaim))); err != nil {
		return c, asked, err
	}
	if c.Role == domain.RoleCustomer {
		text, _ := at(claims, s.CustomerClaim).(string)
		if c.CustomerID, err = domain.ParseID[domain.CustomerID](text); err != nil {
			return c, asked, errors.New("it is a customer's, and names none")
		}
		asked.customer = c.CustomerID
	}
	if s.ScopeClaim != "" {
		if granted := at(claims, s.ScopeClaim); granted != nil {
			var scopes []domain.Scope
			for _, word := range words(granted) {
				scopes = append(scopes, domain.Scope(word))
			}
			c.Scopes = domain.NarrowTo(scopes...) // an issuer's scopes may be for others too: those grant nothing here
		}
	}
	return c, asked, nil
}

// at is the claim at a path; nil if there is none. A name that holds dots itself, as a URL does, is
// looked for first.
func at(claims map[string]any, path string) any {
	if value, whole := claims[path]; whole {
		return value
	}
	name, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		return nil
	}
	inner, _ := claims[name].(map[string]any)
	return at(inner, rest)
}

// words are those of a claim: a string with spaces between them, or a list of strings.
func words(claim any) (out []string) {
	switch v := claim.(type) {
	case string:
		return strings.Fields(v)
	case []any:
		for _, one := range v {
			if s, ok := one.(string); ok {
				out = append(out, s)
			}
		}
	}
	return out
}

// roleOf is the role among an issuer's: the one of ours. Others are the issuer's own business. With
// none of ours, or with several, nobody can say what was meant, so it is nobody's token.
func roleOf(names []string) (role domain.Role, err error) {
	for _, name := range names {
		known := map[string]domain.Role{"admin": domain.RoleAdmin, "service": domain.RoleService, "customer": domain.RoleCustomer}[name]
		switch {
		case known == "" || known == role:
		case role != "":
			return "", fmt.Errorf("it has the roles %s and %s", role, known)
		default:
			role = known
		}
	}
	if role == "" {
		return "", errors.New("it has none of the roles admin, service and customer")
	}
	return role, nil
}

// maxSubject is the longest subject of a Caller, in bytes.
const maxSubject = 128

// safeSubject spells a subject in characters that are safe in rows and log lines; the others are
// escaped with a percent sign. One that is too long keeps its start and ends in a hash of the whole,
// so that no two are spelt alike.
func safeSubject(subject string) string {
	var b strings.Builder
	for i := range len(subject) {
		switch c := subject[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-_.:@|/+", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
		if b.Len() > maxSubject {
			sum := sha256.Sum256([]byte(subject))
			return b.String()[:maxSubject-17] + "~" + hex.EncodeToString(sum[:8])
		}
	}
	return b.String()
}
