package auth

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// The moves of a token's history.
const (
	eventRotated = "ROTATED"
	eventRevoked = "REVOKED"
)

// maxGrace bounds how long a rotated token goes on.
const maxGrace = 30 * 24 * time.Hour

// RotateAccessTokenInput asks for a successor of a token.
type RotateAccessTokenInput struct {
	TokenID        domain.TokenID `json:"tokenId"`
	GraceSeconds   *int32         `json:"graceSeconds"` // how long the old one goes on; nil or 0: it ends at once
	IdempotencyKey *string        `json:"-"`
}

// Rotate makes a token's successor: a new secret with the same role, customer, scopes and name. It
// lives as long as the old one was made for, counted from now; the old one ends after the grace, or
// before that if it was to expire. A token has one successor: whoever rotates it again is answered
// that one, without its secret. TOKEN_ENDED if the token is no good any more and has none.
func (t *Tokens) Rotate(ctx context.Context, caller Caller, in RotateAccessTokenInput) (out txn.Outcome[MintedToken], err error) {
	var grace time.Duration
	if in.GraceSeconds != nil {
		grace = time.Duration(*in.GraceSeconds) * time.Second
	}
	if grace < 0 || grace > maxGrace {
		return out, domain.BadInputAt(domain.Input("graceSeconds"), "a grace is 0 to %d seconds", maxGrace/time.Second)
	}
	op, err := caller.Operation("rotateAccessToken", "", in.IdempotencyKey, in)
	if err != nil {
		return out, err
	}
	id, move, secret := domain.NewID[domain.TokenID](), domain.NewID[domain.UUID](), newToken(caller.TenantID)
	byOperation := t.minted(caller, op, id, &secret)
	return txn.Run(ctx, t.db, txn.Write[MintedToken]{
		Operation: op,
		Apply: func(ctx context.Context, tx txn.Tx) (MintedToken, error) {
			old, err := lock(ctx, tx, caller, in.TokenID)
			if err != nil {
				return MintedToken{}, err
			}
			if err := caller.mayGive(scopesOf(old.Scopes)); err != nil {
				return MintedToken{}, err
			}
			// Read after the lock: whoever held it may have made the successor.
			switch _, err := tx.GetSuccessor(ctx, sqlc.GetSuccessorParams{TenantID: caller.TenantID, Replaces: domain.UUID(old.ID)}); {
			case err == nil:
				return MintedToken{}, txn.ErrRefused // Find reads it
			case !errors.Is(err, pgx.ErrNoRows):
				return MintedToken{}, err
			}
			if ended(old, tx.Now.Time) {
				return MintedToken{}, domain.Refuse(domain.CodeTokenEnded, domain.Input("tokenId"), "the token is revoked, or has expired")
			}
			var expires *time.Time
			if old.ExpiresAt != nil {
				expires = new(tx.Now.Add(old.ExpiresAt.Sub(old.CreatedAt)))
			}
			made, err := tx.InsertAccessToken(ctx, sqlc.InsertAccessTokenParams{
				TenantID: caller.TenantID, ID: id, Name: old.Name, Role: old.Role, CustomerID: old.CustomerID, Scopes: old.Scopes, Replaces: &old.ID,
				SecretHash: hashToken(secret), Hint: hint(secret), OperationID: op.ID, OperationFingerprint: op.Fingerprint, CreatedBy: op.By,
				CreatedAt: tx.Now.Time, ExpiresAt: expires, UpdatedAt: tx.Now,
			})
			if err != nil {
				return MintedToken{}, err
			}
			return MintedToken{made, &secret}, retire(ctx, tx, op, move, old, grace)
		},
		Find: func(ctx context.Context, q *sqlc.Queries) (txn.Found[MintedToken], error) {
			found, err := byOperation(ctx, q)
			if !errors.Is(err, pgx.ErrNoRows) {
				return found, err
			}
			// Somebody else has rotated it, by an operation of theirs.
			row, err := q.GetSuccessor(ctx, sqlc.GetSuccessorParams{TenantID: caller.TenantID, Replaces: domain.UUID(in.TokenID)})
			return txn.Found[MintedToken]{Value: MintedToken{AccessToken: row}, Fingerprint: op.Fingerprint}, err
		},
	})
}

// lock holds a token of the caller's tenant until the transaction ends.
func lock(ctx context.Context, tx txn.Tx, caller Caller, id domain.TokenID) (*sqlc.AccessToken, error) {
	row, err := tx.LockAccessToken(ctx, sqlc.LockAccessTokenParams{TenantID: caller.TenantID, ID: id})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, domain.Refuse(domain.CodeNotFound, domain.Input("tokenId"), "no such token").Because(err)
	}
	return row, err
}

// ended says whether a token is no good any more.
func ended(row *sqlc.AccessToken, now time.Time) bool {
	return row.RevokedAt != nil || row.ExpiresAt != nil && !now.Before(*row.ExpiresAt)
}

// retire ends a rotated token after its grace. Without one it is revoked instead of left to expire:
// the clock of another server may be behind.
func retire(ctx context.Context, tx txn.Tx, op domain.Operation, move domain.UUID, old *sqlc.AccessToken, grace time.Duration) error {
	arg := sqlc.RetireAccessTokenParams{TenantID: old.TenantID, ID: old.ID, ExpiresAt: old.ExpiresAt, UpdatedAt: old.UpdatedAt.Next(tx.Now.Time)}
	if grace == 0 {
		arg.RevokedAt = &tx.Now.Time
	} else if end := tx.Now.Add(grace); old.ExpiresAt == nil || end.Before(*old.ExpiresAt) {
		arg.ExpiresAt = &end
	}
	if _, err := tx.RetireAccessToken(ctx, arg); err != nil {
		return err
	}
	return record(ctx, tx, op, move, old, eventRotated)
}

// record writes a move into a token's history.
func record(ctx context.Context, tx txn.Tx, op domain.Operation, id domain.UUID, row *sqlc.AccessToken, event string) error {
	_, err := tx.InsertAccessTokenHistory(ctx, sqlc.InsertAccessTokenHistoryParams{
		TenantID: row.TenantID, ID: id, TokenID: row.ID, Event: event, OperationID: op.ID, OperationFingerprint: op.Fingerprint, MovedBy: op.By, MovedAt: tx.Now.Time,
	})
	return err
}
