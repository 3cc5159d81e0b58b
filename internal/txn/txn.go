// Package txn says what is atomic. It holds the one transaction runner, the one bounded retry and
// the one translation of database errors; every write of the product goes through Run, every read
// through Read.
package txn

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"countersign/internal/domain"
	"countersign/sqlc"
)

// maxAttempts bounds how often one write or read is run.
const maxAttempts = 5

// Settings are a DB's clock and bounds; the zero value of each means its default.
type Settings struct {
	Clock          func() time.Time // time.Now
	AcquireTimeout time.Duration    // 2 s: how long a request waits for a connection before it is told BUSY
	WriteTimeout   time.Duration    // 10 s: how long an accepted write may take, whatever its client does
	Logger         *slog.Logger     // discards
	// Observe is told how each write and read ended, and after how many attempts; nil tells nobody.
	Observe func(kind, outcome string, attempts int)
}

// DB is the database as the use cases see it: something that runs writes and reads.
type DB struct {
	pool *pgxpool.Pool
	Settings
}

// New makes a DB of a pool.
func New(pool *pgxpool.Pool, s Settings) *DB {
	if s.Clock == nil {
		s.Clock = time.Now
	}
	if s.AcquireTimeout == 0 {
		s.AcquireTimeout = 2 * time.Second
	}
	if s.WriteTimeout == 0 {
		s.WriteTimeout = 10 * time.Second
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	return &DB{pool: pool, Settings: s}
}

// Tx is what the closure of a write may touch, beside its own result: it may run more than once.
type Tx struct {
	*sqlc.Queries
	// Now is fixed for the whole transaction, so that its rows agree.
	Now domain.Version
}

// observe tells how something ended.
func (db *DB) observe(kind string, replayed bool, attempts int, err error) {
	if db.Observe == nil {
		return
	}
	outcome := "done"
	var refusal domain.UserError
	switch {
	case replayed:
		outcome = "replayed"
	case errors.As(err, &refusal):
		outcome = strings.ToLower(string(refusal.GetCode())) // busy, outcome_unknown, or what the domain refused
	case errors.Is(err, pgx.ErrNoRows):
		outcome = "not_found"
	case err != nil:
		outcome = "failed"
	}
	db.Observe(kind, outcome, attempts)
}

// acquire takes a connection from the pool, for at most AcquireTimeout.
func (db *DB) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, db.AcquireTimeout)
	defer cancel()
	return db.pool.Acquire(ctx)
}

// pause waits before an attempt that follows others, longer each time and never the same time, so
// that writers that collided do not collide again.
func pause(ctx context.Context, attempt int) {
	const shortest, longest = 2 * time.Millisecond, 100 * time.Millisecond
	limit := min(shortest<<attempt, longest)
	timer := time.NewTimer(rand.N(limit))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// IsConflict says whether a write came to nothing because others were faster, each time it was
// tried: by a guard that refused it, or by a constraint that decided against it.
func IsConflict(err error) bool {
	var violation *pgconn.PgError
	return errors.Is(err, ErrRefused) || errors.As(err, &violation) && violation.Code == pgerrcode.UniqueViolation
}
