package auth

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/internal/domain"
	"countersign/internal/join"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// Tokens makes, lists, revokes and recognises access tokens.
type Tokens struct {
	db      *txn.DB
	lookups *join.Group[struct{}, presented, *sqlc.AccessToken] // all in one line
}

// presented is a token as a request presents it.
type presented struct {
	tenant domain.TenantID
	hash   [32]byte
}

// NewTokens makes Tokens of a database.
func NewTokens(db *txn.DB) *Tokens {
	t := &Tokens{db: db}
	t.lookups = join.New(join.Limits{Batch: 500, Queue: 10_000, Timeout: 5 * time.Second}, t.lookUp)
	return t
}

// Authenticate says who presents a token: UNAUTHENTICATED if its checksum is wrong, if it is not
// known, has expired or was revoked. Nothing is cached: a revoked token is refused at once, on
// every server. Look-ups that arrive together share one statement instead.
func (t *Tokens) Authenticate(ctx context.Context, token string) (Caller, error) {
	tenant, ok := parseToken(token)
	if !ok {
		return Caller{}, errNoToken
	}
	row, err := t.lookups.Do(ctx, struct{}{}, presented{tenant, [32]byte(hashToken(token))})
	switch {
	case errors.Is(err, join.ErrFull), err != nil && ctx.Err() != nil: // full, or the caller is gone
		return Caller{}, domain.Busy().Because(err)
	case err != nil:
		return Caller{}, err
	case row == nil, row.RevokedAt != nil, row.ExpiresAt != nil && !t.db.Clock().Before(*row.ExpiresAt):
		return Caller{}, errNoToken
	}
	caller := Caller{TenantID: row.TenantID, TokenID: row.ID, Role: row.Role}
	if row.CustomerID != nil {
		caller.CustomerID = *row.CustomerID
	}
	return caller, nil
}

// errNoToken is one answer to every token that is not good: which of its faults it has is nobody's
// business.
var errNoToken = domain.Refuse(domain.CodeUnauthenticated, nil, "the access token is not valid")

// lookUp is the one statement of requests that arrived together.
func (t *Tokens) lookUp(ctx context.Context, _ struct{}, requests []presented) ([]*sqlc.AccessToken, error) {
	arg := sqlc.EveryPresentedTokenParams{}
	asked := make(map[presented]bool, len(requests))
	for _, r := range requests {
		if asked[r] { // many requests, one caller
			continue
		}
		asked[r] = true
		arg.TenantIds = append(arg.TenantIds, domain.UUID(r.tenant))
		arg.SecretHashes = append(arg.SecretHashes, r.hash[:])
	}
	rows, err := txn.Read(ctx, t.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.AccessToken, error) {
		return q.EveryPresentedToken(ctx, arg)
	})
	if err != nil {
		return nil, err
	}
	known := make(map[presented]*sqlc.AccessToken, len(rows))
	for _, row := range rows {
		known[presented{row.TenantID, [32]byte(row.SecretHash)}] = row
	}
	found := make([]*sqlc.AccessToken, len(requests))
	for i, r := range requests {
		found[i] = known[r]
	}
	return found, nil
}

// NewToken is what a token is made with.
type NewToken struct {
	TenantID   domain.TenantID
	Name       string // what it is for; may be empty
	Role       domain.Role
	CustomerID *domain.CustomerID // required in the role CUSTOMER, refused in the others
	ExpiresAt  *time.Time
}

// Create makes a token and returns it: the one time it is seen.
func (t *Tokens) Create(ctx context.Context, n NewToken) (string, *sqlc.AccessToken, error) {
	switch n.Role {
	case domain.RoleAdmin, domain.RoleService, domain.RoleCustomer:
	default:
		return "", nil, domain.BadInput("a role is one of ADMIN, SERVICE, CUSTOMER")
	}
	if (n.Role == domain.RoleCustomer) != (n.CustomerID != nil) {
		return "", nil, domain.BadInput("the role CUSTOMER, and no other, is bound to a customer")
	}
	id, token := domain.NewID[domain.TokenID](), newToken(n.TenantID)
	out, err := txn.Run(ctx, t.db, txn.Write[*sqlc.AccessToken]{
		OneStatement: true,
		Apply: func(ctx context.Context, tx txn.Tx) (*sqlc.AccessToken, error) {
			return tx.InsertAccessToken(ctx, sqlc.InsertAccessTokenParams{
				TenantID: n.TenantID, ID: id, Name: n.Name, Role: n.Role, CustomerID: n.CustomerID,
				SecretHash: hashToken(token), Hint: hint(token),
				CreatedAt: tx.Now.Time, ExpiresAt: n.ExpiresAt, UpdatedAt: tx.Now,
			})
		},
		Find: func(ctx context.Context, q *sqlc.Queries) (txn.Found[*sqlc.AccessToken], error) {
			row, err := q.GetAccessToken(ctx, sqlc.GetAccessTokenParams{TenantID: n.TenantID, ID: id})
			return txn.Found[*sqlc.AccessToken]{Value: row, Own: true}, err
		},
	})
	return token, out.Value, err
}

// List returns a tenant's tokens, oldest first.
func (t *Tokens) List(ctx context.Context, tenant domain.TenantID) ([]*sqlc.AccessToken, error) {
	return txn.Read(ctx, t.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.AccessToken, error) {
		return q.ListAccessTokens(ctx, sqlc.ListAccessTokensParams{TenantID: tenant})
	})
}

// Revoke ends a token at once. Revoking again changes nothing.
func (t *Tokens) Revoke(ctx context.Context, tenant domain.TenantID, id domain.TokenID) (*sqlc.AccessToken, error) {
	get := func(ctx context.Context, q *sqlc.Queries) (*sqlc.AccessToken, error) {
		return q.GetAccessToken(ctx, sqlc.GetAccessTokenParams{TenantID: tenant, ID: id})
	}
	out, err := txn.Run(ctx, t.db, txn.Write[*sqlc.AccessToken]{
		Apply: func(ctx context.Context, tx txn.Tx) (*sqlc.AccessToken, error) {
			row, err := get(ctx, tx.Queries)
			if err != nil || row.RevokedAt != nil {
				return row, err
			}
			row, err = tx.RevokeAccessToken(ctx, sqlc.RevokeAccessTokenParams{
				TenantID: tenant, ID: id, RevokedAt: &tx.Now.Time, UpdatedAt: row.UpdatedAt.Next(tx.Now.Time),
			})
			if errors.Is(err, pgx.ErrNoRows) {
				return nil, txn.ErrRefused
			}
			return row, err
		},
		Find: func(ctx context.Context, q *sqlc.Queries) (txn.Found[*sqlc.AccessToken], error) {
			row, err := get(ctx, q)
			if err == nil && row.RevokedAt == nil {
				err = pgx.ErrNoRows
			}
			return txn.Found[*sqlc.AccessToken]{Value: row}, err
		},
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, domain.Refuse(domain.CodeNotFound, nil, "no such token").Because(err)
	}
	return out.Value, err
}
