package txn

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/internal/domain"
	"countersign/sqlc"
)

// Write is one write of the product: what it does, and how its effect is found again.
type Write[T any] struct {
	domain.Operation
	// Apply locks or reads, lets the domain decide, and writes, all within one transaction. Ids and
	// secrets are made before it, so that every run writes the same ones.
	Apply func(ctx context.Context, tx Tx) (T, error)
	// Find reads the effect of an earlier run by the operation's id: pgx.ErrNoRows if there is none.
	Find func(ctx context.Context, q *sqlc.Queries) (Found[T], error)
	// OneStatement says that Apply is a single statement: it is sent without BEGIN and COMMIT, as
	// a transaction of its own in one round trip.
	OneStatement bool
}

// Found is the effect of an earlier run of a write.
type Found[T any] struct {
	Value       T
	Fingerprint domain.Fingerprint // of the input that made it
	Own         bool               // made by this very request, by a run whose answer was lost
}

// Outcome is what a write came to.
type Outcome[T any] struct {
	Value    T
	Replayed bool   // an earlier request did the work
	Key      string // the idempotency key that asks for it again
	KeyMade  bool   // by this server: the client knows it only from the answer
}

// ErrRefused is what Apply returns when a guarded update found no row: someone else moved it
// since it was read. The write is run again, and so reads everything again.
var ErrRefused = errors.New("a guard refused the write")

// Run makes a write take effect exactly once, or tells why it did not.
//
// Once begun it finishes even if ctx is cancelled, within WriteTimeout: a client that hangs up
// leaves a whole effect or none. Transient failures run the whole transaction again, at most five
// times. If the answer to COMMIT is lost, the operation is run again under the same id, which
// takes effect only if the first run did not; from then on only the effect itself is an answer,
// and everything else is OUTCOME_UNKNOWN: the first run may still be on its way.
func Run[T any](ctx context.Context, db *DB, w Write[T]) (Outcome[T], error) {
	if ctx.Err() != nil { // the client is gone before anything began
		return Outcome[T]{}, ErrCancelled
	}
	return run(ctx, db, w, nil)
}

// ErrCancelled is the answer to a client that hung up before its write began: there is no effect.
var ErrCancelled = domain.Refuse(domain.CodeUnavailable, nil, "the request was cancelled before it began")

// run is Run; earlier is how a first attempt has failed already, if one was made.
func run[T any](ctx context.Context, db *DB, w Write[T], earlier error) (out Outcome[T], err error) {
	attempts := 0
	defer func() { db.observe("write", out.Replayed, attempts, err) }()
	accepted := context.WithoutCancel(ctx)
	ctx, cancel := context.WithTimeout(accepted, db.WriteTimeout)
	defer cancel()

	if v, _ := classify(earlier); w.KeyGiven && v != lost { // a replay is decided before anything else
		switch out, err := replay(ctx, db, w); {
		case err == nil || !errors.Is(err, pgx.ErrNoRows):
			return out, err
		}
	}
	var unknown bool  // an answer to COMMIT was lost
	var repeated bool // the one retry of againOnce is spent
	for attempt := 1; ; attempt++ {
		attempts = attempt
		var value T
		err := earlier
		if earlier = nil; err == nil {
			value, err = attemptOnce(ctx, db, w)
		}
		if err == nil {
			return Outcome[T]{Value: value, Key: w.Key, KeyMade: !w.KeyGiven}, nil
		}
		v, err := classify(err)
		if v == replayed || v == refused || v == decided && (w.KeyGiven || unknown) {
			// Read in a statement of its own: the one that lost has a snapshot without the winner. A refusal
			// may be due to what this very operation has done: in our own earlier run, or in that of a twin
			// under the same key, which we have waited for.
			out, findErr := replay(ctx, db, w)
			switch {
			case findErr == nil:
				return out, nil
			case !errors.Is(findErr, pgx.ErrNoRows):
				v, err = answer, findErr
			case v != decided:
				v = again
			}
		}
		db.Logger.DebugContext(ctx, "attempt failed", slog.Int("attempt", attempt), slog.Any("error", err))
		switch {
		case v == lost && !unknown:
			unknown = true
			ctx, cancel = context.WithTimeout(accepted, db.WriteTimeout)
			defer cancel() // at most once: the loop comes here only while the outcome is not yet unknown
			continue
		case v == again && attempt < maxAttempts && ctx.Err() == nil,
			v == againOnce && !repeated:
			repeated = repeated || v == againOnce
			pause(ctx, attempt)
			continue
		case unknown || v == lost:
			return Outcome[T]{}, w.OutcomeUnknown(err)
		case v == again:
			return Outcome[T]{}, domain.Busy().Because(err)
		}
		return Outcome[T]{}, err
	}
}

// replay answers with the effect of an earlier run of the same operation.
func replay[T any](ctx context.Context, db *DB, w Write[T]) (Outcome[T], error) {
	found, err := Read(ctx, db, w.Find)
	if err != nil {
		return Outcome[T]{}, err
	}
	return w.replayed(found)
}

// replayed answers with what was found under the write's operation.
func (w Write[T]) replayed(found Found[T]) (Outcome[T], error) {
	if !found.Fingerprint.Equal(w.Fingerprint) {
		return Outcome[T]{}, w.KeyReused()
	}
	return Outcome[T]{Value: found.Value, Replayed: !found.Own, Key: w.Key, KeyMade: !w.KeyGiven}, nil
}

// attemptOnce runs Apply in one transaction. Its error is a failure that says at which stage.
func attemptOnce[T any](ctx context.Context, db *DB, w Write[T]) (value T, err error) {
	conn, err := db.acquire(ctx)
	if err != nil {
		return value, &failure{stage: acquiring, cause: err}
	}
	defer conn.Release()
	failed := func(at stage, err error) error { return db.failed(at, conn, err) }
	now := domain.VersionAt(db.Clock())
	if w.OneStatement {
		// Its own COMMIT: whatever is lost after it was sent may have happened.
		if value, err = w.Apply(ctx, Tx{sqlc.New(conn), now}); err != nil {
			return value, failed(committing, err)
		}
		return value, nil
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return value, failed(working, err)
	}
	defer rollback(tx)
	if value, err = w.Apply(ctx, Tx{sqlc.New(tx), now}); err != nil {
		return value, failed(working, err)
	}
	if err := ctx.Err(); err != nil { // COMMIT was not sent: nothing is unknown
		return value, failed(working, err)
	}
	if err := tx.Commit(ctx); err != nil {
		return value, failed(committing, err)
	}
	return value, nil
}

// rollback ends a transaction that did not commit; after a COMMIT it does nothing. It has a
// deadline of its own, since the write's may be what ended the transaction, and an error leaves
// the connection closed, which the server takes for a rollback too.
func rollback(tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = tx.Rollback(ctx)
}
