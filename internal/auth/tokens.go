package auth

import (
	"context"
	"errors"
	"time"

	"countersign/internal/domain"
	"countersign/internal/join"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// Tokens makes, lists, revokes and recognises access tokens.
type Tokens struct {
	db      *txn.DB
	lookups *join.Group[struct{}, presented, *sqlc.EveryPresentedTokenRow] // all in one line
}

// presented is a token as a request presents it.
type presented struct {
	tenant domain.TenantID
	hash   [32]byte
}

// NewTokens makes Tokens of a database.
func NewTokens(db *txn.DB) *Tokens {
	t := &Tokens{db: db}
	t.lookups = join.New(join.Limits{Batch: 500, Queue: 10_000, Timeout: 5 * time.Second, BoardFirst: true}, t.lookUp)
	return t
}

// Waiting is how many look-ups wait for the next statement.
func (t *Tokens) Waiting() int { return t.lookups.Waiting() }

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
	caller := Caller{TenantID: row.TenantID, TokenID: row.ID, Role: row.Role, Scopes: scopesOf(row.Scopes)}
	if row.CustomerID != nil {
		caller.CustomerID = *row.CustomerID
	}
	return caller, nil
}

// scopesOf are a token's scopes. One that this server does not know grants nothing.
func scopesOf(scopes []domain.Scope) domain.Scopes {
	if scopes == nil {
		return 0
	}
	return domain.NarrowTo(scopes...)
}

// errNoToken is one answer to every token that is not good: which of its faults it has is nobody's
// business.
var errNoToken = domain.Refuse(domain.CodeUnauthenticated, nil, "the access token is not valid")

// lookUp is the one statement of requests that arrived together.
func (t *Tokens) lookUp(ctx context.Context, _ struct{}, requests []presented) ([]*sqlc.EveryPresentedTokenRow, error) {
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
	rows, err := txn.Read(ctx, t.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.EveryPresentedTokenRow, error) {
		return q.EveryPresentedToken(ctx, arg)
	})
	if err != nil {
		return nil, err
	}
	known := make(map[presented]*sqlc.EveryPresentedTokenRow, len(rows))
	for _, row := range rows {
		known[presented{row.TenantID, [32]byte(row.SecretHash)}] = row
	}
	found := make([]*sqlc.EveryPresentedTokenRow, len(requests))
	for i, r := range requests {
		found[i] = known[r]
	}
	return found, nil
}
