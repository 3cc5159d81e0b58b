package auth

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// RevokeAccessTokenInput asks for the end of a token.
type RevokeAccessTokenInput struct {
	TokenID        domain.TokenID `json:"tokenId"`
	IdempotencyKey *string        `json:"-"`
}

// RevokeToken ends a token at once, on every server. Revoking again changes nothing: the first moment
// stays, and whoever asks is answered it.
func (t *Tokens) RevokeToken(ctx context.Context, caller Caller, in RevokeAccessTokenInput) (out txn.Outcome[*sqlc.AccessToken], err error) {
	op, err := caller.Operation("revokeAccessToken", "", in.IdempotencyKey, in)
	if err != nil {
		return out, err
	}
	id := domain.NewID[domain.UUID]()
	return txn.Run(ctx, t.db, txn.Write[*sqlc.AccessToken]{
		Operation: op,
		Apply: func(ctx context.Context, tx txn.Tx) (*sqlc.AccessToken, error) {
			row, err := lock(ctx, tx, caller, in.TokenID)
			if err != nil {
				return nil, err
			}
			row, err = tx.RevokeAccessToken(ctx, sqlc.RevokeAccessTokenParams{
				TenantID: caller.TenantID, ID: in.TokenID, RevokedAt: &tx.Now.Time, UpdatedAt: row.UpdatedAt.Next(tx.Now.Time),
			})
			switch {
			case errors.Is(err, pgx.ErrNoRows):
				return nil, txn.ErrRefused // revoked already: Find reads when
			case err != nil:
				return nil, err
			}
			return row, record(ctx, tx, op, id, row, eventRevoked)
		},
		Find: func(ctx context.Context, q *sqlc.Queries) (found txn.Found[*sqlc.AccessToken], err error) {
			move, err := q.FindAccessTokenMoveOfOperation(ctx, sqlc.FindAccessTokenMoveOfOperationParams{TenantID: caller.TenantID, OperationID: op.ID})
			token := in.TokenID
			switch {
			case err == nil: // our own, or an earlier request's, perhaps of another token: the fingerprint says so
				token, found.Fingerprint, found.Own = move.TokenID, move.OperationFingerprint, move.ID == id
			case errors.Is(err, pgx.ErrNoRows): // somebody else's, by an operation of theirs, if it is revoked at all
				found.Fingerprint = op.Fingerprint
			default:
				return found, err
			}
			found.Value, err = q.GetAccessToken(ctx, sqlc.GetAccessTokenParams{TenantID: caller.TenantID, ID: token})
			if err == nil && found.Value.RevokedAt == nil {
				err = pgx.ErrNoRows
			}
			return found, err
		},
	})
}
