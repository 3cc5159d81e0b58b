package auth

import (
	"context"

	"countersign/internal/domain"
	"countersign/internal/paging"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// All returns every token of a tenant, oldest first, for the command line.
func (t *Tokens) All(ctx context.Context, tenant domain.TenantID) ([]*sqlc.AccessToken, error) {
	return txn.Read(ctx, t.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.AccessToken, error) {
		return q.AllAccessTokens(ctx, sqlc.AllAccessTokensParams{TenantID: tenant})
	})
}

// List returns a page of the tenant's tokens, in order of creation.
func (t *Tokens) List(ctx context.Context, caller Caller, p paging.Request[domain.TokenID]) (paging.Page[*sqlc.AccessToken], error) {
	arg := sqlc.ListAccessTokensParams{TenantID: caller.TenantID, AfterID: p.After, BeforeID: p.Before, RowLimit: p.Limit()}
	rows, err := txn.Read(ctx, t.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.AccessToken, error) {
		if p.Backward {
			return q.ListAccessTokensBackward(ctx, sqlc.ListAccessTokensBackwardParams(arg))
		}
		return q.ListAccessTokens(ctx, arg)
	})
	return paging.Cut(p, rows), err
}

// ByID returns tokens of the tenant, each at its place; nil where there is none.
func (t *Tokens) ByID(ctx context.Context, caller Caller, ids []domain.TokenID) ([]*sqlc.AccessToken, error) {
	rows, err := txn.Read(ctx, t.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.AccessToken, error) {
		return q.GetAccessTokens(ctx, sqlc.GetAccessTokensParams{TenantID: caller.TenantID, Ids: ids})
	})
	return paging.InOrder(ids, rows, func(row *sqlc.AccessToken) (domain.TokenID, bool) { return row.ID, true }), err
}

// HistoryOf returns the moves of each token, oldest first.
func (t *Tokens) HistoryOf(ctx context.Context, caller Caller, tokens []*sqlc.AccessToken) ([][]*sqlc.AccessTokenHistory, error) {
	ids := paging.IDs(tokens, func(r *sqlc.AccessToken) domain.TokenID { return r.ID })
	rows, err := txn.Read(ctx, t.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.AccessTokenHistory, error) {
		return q.HistoryOfAccessTokens(ctx, sqlc.HistoryOfAccessTokensParams{TenantID: caller.TenantID, TokenIds: ids})
	})
	return paging.Group(ids, rows, func(row *sqlc.AccessTokenHistory) domain.TokenID { return row.TokenID }), err
}
