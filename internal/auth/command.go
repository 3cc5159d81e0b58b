package auth

import (
	"context"
	"time"

	"countersign/internal/domain"
	"countersign/sqlc"
)

// NewToken is what the command line makes a token with.
type NewToken struct {
	TenantID   domain.TenantID
	Name       string // what it is for; may be empty
	Role       domain.Role
	CustomerID *domain.CustomerID // required in the role CUSTOMER, refused in the others
	Scopes     []domain.Scope     // nil: all that the role may
	ExpiresAt  *time.Time
}

// Command is the command line as a caller: it may do everything in the tenant.
func Command(tenant domain.TenantID) Caller { return Caller{TenantID: tenant, Role: domain.RoleAdmin} }

// Create makes a token for the command line and returns it: the one time it is seen.
func (t *Tokens) Create(ctx context.Context, n NewToken) (string, *sqlc.AccessToken, error) {
	out, err := t.CreateToken(ctx, Command(n.TenantID), CreateAccessTokenInput{
		Role: n.Role, CustomerID: n.CustomerID, Name: n.Name, Scopes: n.Scopes, ExpiresAt: n.ExpiresAt,
	})
	if err != nil {
		return "", nil, err
	}
	return *out.Value.Secret, out.Value.AccessToken, nil
}

// Revoke ends a token for the command line.
func (t *Tokens) Revoke(ctx context.Context, tenant domain.TenantID, id domain.TokenID) (*sqlc.AccessToken, error) {
	out, err := t.RevokeToken(ctx, Command(tenant), RevokeAccessTokenInput{TokenID: id})
	return out.Value, err
}
