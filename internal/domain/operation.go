package domain

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"io"
	"unicode/utf8"

	"github.com/gofrs/uuid/v5"
)

// OperationID names one write for ever: UUIDv5 of (tenant, mutation, scope, key). It stands under
// a unique constraint in the row that the write creates, or in the history row of the transition
// it makes, so the same write cannot take effect twice.
type OperationID [16]byte

// MarshalGQL prints the id as a UUID.
func (id OperationID) MarshalGQL(w io.Writer) { writeQuoted(w, uuid.UUID(id).String()) }

// UnmarshalGQL refuses: an operation is named by its idempotency key.
func (id *OperationID) UnmarshalGQL(any) error {
	return BadInput("an operation is named by its idempotency key")
}

// Fingerprint is a version byte and a SHA-256 of an operation's canonical input. The same key
// with another fingerprint is another request under a used key.
type Fingerprint []byte

// Equal says whether both fingerprints are of the same input.
func (f Fingerprint) Equal(g Fingerprint) bool { return bytes.Equal(f, g) }

// fingerprintVersion changes when the canonical form of any input does.
const fingerprintVersion = 1

// MaxIdempotencyKey is the longest key, in characters.
const MaxIdempotencyKey = 255

// Operation is what makes a write safe to ask for again.
type Operation struct {
	ID          OperationID
	Key         string      // what the client asks again with
	KeyGiven    bool        // the client chose the key; else this server made it
	Fingerprint Fingerprint // of the input, without the key
	By          string      // who asked, for the row's record
}

// NewOperation names a mutation's write. scope narrows where the key must be unique beside the
// tenant (the customer, for orders) and is empty elsewhere; input is the mutation's input, whose
// JSON is its canonical form.
func NewOperation(tenant TenantID, by, mutation, scope string, key *string, input any) (Operation, error) {
	op := Operation{By: by}
	if key != nil {
		if n := utf8.RuneCountInString(*key); n < 1 || n > MaxIdempotencyKey {
			return op, BadInputAt(Input("idempotencyKey"), "an idempotency key is 1 to %d characters", MaxIdempotencyKey)
		}
		op.Key, op.KeyGiven = *key, true
	} else {
		op.Key = rand.Text()
	}
	op.ID = OperationID(uuid.NewV5(uuid.UUID(tenant), mutation+"\x00"+scope+"\x00"+op.Key))
	canonical, err := json.Marshal(input)
	if err != nil {
		return op, err
	}
	sum := sha256.Sum256(canonical)
	op.Fingerprint = append(Fingerprint{fingerprintVersion}, sum[:]...)
	return op, nil
}

// KeyReused is the answer to a known key with another input. It says nothing of what the key was
// used for.
func (op Operation) KeyReused() error {
	return Refuse(CodeIdempotencyKeyReused, Input("idempotencyKey"), "this idempotency key was used with another input")
}

// OutcomeUnknown is the answer where the database's own was lost.
func (op Operation) OutcomeUnknown(cause error) error {
	message := "the outcome is unknown: ask again with this idempotency key"
	return &OutcomeUnknownError{
		Refusal:        *Refuse(CodeOutcomeUnknown, nil, "%s", message).Because(cause),
		IdempotencyKey: op.Key,
	}
}
