package metering

import (
	"context"
	"encoding/json"
	"time"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// The bounds of what may be recorded.
const (
	maxEvents = 1000                // of one request
	maxAge    = 92 * 24 * time.Hour // how late usage may be told
	maxAhead  = 5 * time.Minute     // how far clocks may differ
)

// UsageEventInput is something that a key was used for.
type UsageEventInput struct {
	ID         string          `json:"id"` // the client's; it counts once for ever
	APIKeyID   domain.APIKeyID `json:"apiKeyId"`
	Quantity   int64           `json:"quantity"`
	OccurredAt time.Time       `json:"occurredAt"`
}

// RecordUsageInput tells what was used.
type RecordUsageInput struct {
	Events         []UsageEventInput `json:"events"`
	IdempotencyKey *string           `json:"-"`
}

// Recorded is what became of a request of usage. Each event is judged alone: those that are refused
// do not hold up the others.
type Recorded struct {
	Accepted   int32
	Duplicates int32 // known already, with the same content: a success
	Refused    []error
}

// RecordUsage meters events. Their keys are held active until the events are safe, so that an event
// is either part of a revocation's settlement or refused.
func (s *Service) RecordUsage(ctx context.Context, caller auth.Caller, in RecordUsageInput) (txn.Outcome[Recorded], error) {
	if len(in.Events) == 0 || len(in.Events) > maxEvents {
		return txn.Outcome[Recorded]{}, domain.BadInputAt(domain.Input("events"), "1 to %d events at once", maxEvents)
	}
	op, err := caller.Operation("recordUsage", "", in.IdempotencyKey, in)
	if err != nil {
		return txn.Outcome[Recorded]{}, err
	}
	batch := domain.NewID[domain.UUID]()
	return txn.Run(ctx, s.db, txn.Write[Recorded]{
		Operation: op,
		Apply: func(ctx context.Context, tx txn.Tx) (Recorded, error) {
			r := recording{tx: tx, caller: caller, events: in.Events}
			if err := r.run(ctx); err != nil {
				return Recorded{}, err
			}
			if !op.KeyGiven { // each event has a key of its own
				return r.Recorded, nil
			}
			refused, err := json.Marshal(r.Refused)
			if err != nil {
				return Recorded{}, err
			}
			_, err = tx.InsertUsageBatch(ctx, sqlc.InsertUsageBatchParams{
				TenantID: caller.TenantID, ID: batch, OperationID: op.ID, OperationFingerprint: op.Fingerprint,
				Accepted: r.Accepted, Duplicates: r.Duplicates, Refused: refused, RecordedBy: op.By, RecordedAt: tx.Now.Time,
			})
			return r.Recorded, err
		},
		Find: func(ctx context.Context, q *sqlc.Queries) (found txn.Found[Recorded], err error) {
			row, err := q.FindUsageBatch(ctx, sqlc.FindUsageBatchParams{TenantID: caller.TenantID, OperationID: op.ID})
			if err != nil {
				return found, err
			}
			found = txn.Found[Recorded]{Fingerprint: row.OperationFingerprint, Own: row.ID == batch}
			found.Value, err = recorded(row)
			return found, err
		},
	})
}

// recorded is what became of an earlier request: a replay refuses what that one refused.
func recorded(row *sqlc.UsageBatch) (Recorded, error) {
	r := Recorded{Accepted: row.Accepted, Duplicates: row.Duplicates}
	var refused []*domain.Refusal
	err := json.Unmarshal(row.Refused, &refused)
	for _, one := range refused {
		r.Refused = append(r.Refused, one)
	}
	return r, err
}
