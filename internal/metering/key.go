package metering

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"hash/crc32"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// A customer's key is "ck_" and 39 characters of lower-case base 32: a random part (20 bytes) and a
// CRC-32 of it, which refuses a typo without a look-up.
const secretPrefix = "ck_"

var secretEncoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

func newSecret() string {
	raw := make([]byte, 20, 24)
	_, _ = rand.Read(raw) // never fails
	return secretPrefix + secretEncoding.EncodeToString(binary.BigEndian.AppendUint32(raw, crc32.ChecksumIEEE(raw)))
}

// CreateAPIKeyInput asks for a key of a customer.
type CreateAPIKeyInput struct {
	CustomerID     domain.CustomerID `json:"customerId"`
	Name           string            `json:"name"`
	UnitPrice      domain.Decimal    `json:"unitPrice"` // minor units per unit
	IdempotencyKey *string           `json:"-"`
}

// NewAPIKey is a key with its secret, which is shown this once: a replay has none.
type NewAPIKey struct {
	*sqlc.APIKey
	Secret *string
}

// CreateKey makes a key. Only a hash of its secret is kept.
func (s *Service) CreateKey(ctx context.Context, caller auth.Caller, in CreateAPIKeyInput) (out txn.Outcome[NewAPIKey], err error) {
	if err := domain.CheckText(domain.Input("name"), in.Name, 200); err != nil {
		return out, err
	}
	if in.UnitPrice.Negative {
		return out, domain.BadInputAt(domain.Input("unitPrice"), "a price is not negative")
	}
	op, err := caller.Operation("createApiKey", "", in.IdempotencyKey, in)
	if err != nil {
		return out, err
	}
	id, secret := domain.NewID[domain.APIKeyID](), newSecret()
	hash := sha256.Sum256([]byte(secret))
	return txn.Run(ctx, s.db, txn.Write[NewAPIKey]{
		Operation: op, OneStatement: true,
		Apply: func(ctx context.Context, tx txn.Tx) (NewAPIKey, error) {
			row, err := tx.InsertAPIKey(ctx, sqlc.InsertAPIKeyParams{
				TenantID: caller.TenantID, ID: id, CustomerID: in.CustomerID, Name: in.Name, UnitPrice: in.UnitPrice, SecretHash: hash[:],
				Hint: secret[:len(secretPrefix)+4] + "…" + secret[len(secret)-4:], OperationID: op.ID, OperationFingerprint: op.Fingerprint,
				CreatedBy: op.By, CreatedAt: tx.Now.Time, UpdatedAt: tx.Now,
			})
			return NewAPIKey{row, &secret}, err
		},
		Find: func(ctx context.Context, q *sqlc.Queries) (found txn.Found[NewAPIKey], err error) {
			row, err := q.FindAPIKeyOfOperation(ctx, sqlc.FindAPIKeyOfOperationParams{TenantID: caller.TenantID, OperationID: op.ID})
			if err != nil {
				return found, err
			}
			found = txn.Found[NewAPIKey]{Value: NewAPIKey{APIKey: row}, Fingerprint: row.OperationFingerprint, Own: row.ID == id}
			if found.Own { // the answer was lost, not the secret
				found.Value.Secret = &secret
			}
			return found, nil
		},
	})
}
