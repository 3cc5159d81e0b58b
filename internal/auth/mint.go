package auth

import (
	"context"
	"time"

	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// CreateAccessTokenInput asks for a token of the caller's tenant.
type CreateAccessTokenInput struct {
	Role           domain.Role        `json:"role"`
	CustomerID     *domain.CustomerID `json:"customerId"` // required in the role CUSTOMER, refused in the others
	Name           string             `json:"name"`
	Scopes         []domain.Scope     `json:"scopes"` // nil: all that the role may
	ExpiresAt      *time.Time         `json:"expiresAt"`
	IdempotencyKey *string            `json:"-"`
}

func (in CreateAccessTokenInput) check() (domain.Scopes, error) {
	switch in.Role {
	case domain.RoleAdmin, domain.RoleService, domain.RoleCustomer:
	default:
		return 0, domain.BadInputAt(domain.Input("role"), "a role is one of ADMIN, SERVICE, CUSTOMER")
	}
	if (in.Role == domain.RoleCustomer) != (in.CustomerID != nil) {
		return 0, domain.BadInputAt(domain.Input("customerId"), "the role CUSTOMER, and no other, is bound to a customer")
	}
	if in.Name != "" {
		if err := domain.CheckText(domain.Input("name"), in.Name, 200); err != nil {
			return 0, err
		}
	}
	return domain.ParseScopes(domain.Input("scopes"), in.Scopes)
}

// MintedToken is a token with its secret, which is shown this once: a replay has none.
type MintedToken struct {
	*sqlc.AccessToken
	Secret *string
}

// CreateToken makes a token. FORBIDDEN where it could do more than the caller may: scopes that the
// caller has not, or all of them where the caller is narrowed. How long it is good is no right of the
// caller's: it may outlive the caller.
func (t *Tokens) CreateToken(ctx context.Context, caller Caller, in CreateAccessTokenInput) (out txn.Outcome[MintedToken], err error) {
	scopes, err := in.check()
	if err != nil {
		return out, err
	}
	if err := caller.mayGive(scopes); err != nil {
		return out, err
	}
	op, err := caller.Operation("createAccessToken", "", in.IdempotencyKey, in)
	if err != nil {
		return out, err
	}
	id, secret := domain.NewID[domain.TokenID](), newToken(caller.TenantID)
	return txn.Run(ctx, t.db, txn.Write[MintedToken]{
		Operation: op, OneStatement: true,
		Apply: func(ctx context.Context, tx txn.Tx) (MintedToken, error) {
			if in.ExpiresAt != nil && !in.ExpiresAt.After(tx.Now.Time) {
				return MintedToken{}, domain.BadInputAt(domain.Input("expiresAt"), "a token expires in the future")
			}
			row, err := tx.InsertAccessToken(ctx, sqlc.InsertAccessTokenParams{
				TenantID: caller.TenantID, ID: id, Name: in.Name, Role: in.Role, CustomerID: in.CustomerID, Scopes: scopes.List(),
				SecretHash: hashToken(secret), Hint: hint(secret), OperationID: op.ID, OperationFingerprint: op.Fingerprint, CreatedBy: op.By,
				CreatedAt: tx.Now.Time, ExpiresAt: in.ExpiresAt, UpdatedAt: tx.Now,
			})
			return MintedToken{row, &secret}, err
		},
		Find: t.minted(caller, op, id, &secret),
	})
}

// mayGive refuses to give scopes away that the caller has not.
func (c Caller) mayGive(scopes domain.Scopes) error {
	if c.Scopes.Cover(scopes) {
		return nil
	}
	return domain.Refuse(domain.CodeForbidden, nil, "a token cannot give more than it has: %s", domain.JoinScopes(c.Scopes.List(), ", "))
}

// minted finds the token that an operation made; the secret, if this very request made it.
func (t *Tokens) minted(caller Caller, op domain.Operation, id domain.TokenID, secret *string) func(context.Context, *sqlc.Queries) (txn.Found[MintedToken], error) {
	return func(ctx context.Context, q *sqlc.Queries) (found txn.Found[MintedToken], err error) {
		row, err := q.FindAccessTokenOfOperation(ctx, sqlc.FindAccessTokenOfOperationParams{TenantID: caller.TenantID, OperationID: op.ID})
		if err != nil {
			return found, err
		}
		found = txn.Found[MintedToken]{Value: MintedToken{AccessToken: row}, Fingerprint: row.OperationFingerprint, Own: row.ID == id}
		if found.Own { // the answer was lost, not the secret
			found.Value.Secret = secret
		}
		return found, nil
	}
}
