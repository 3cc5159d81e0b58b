package txn

import (
	"context"

	"github.com/jackc/pgx/v5"

	"countersign/internal/domain"
	"countersign/sqlc"
)

// reading is the closure of a read.
type reading[T any] func(ctx context.Context, q *sqlc.Queries) (T, error)

// Read runs fn, which only reads, and runs it again after transient failures. Its statements need
// not be of one moment.
func Read[T any](ctx context.Context, db *DB, fn reading[T]) (T, error) {
	return read(ctx, db, fn, plain[T])
}

// Snapshot runs fn in one REPEATABLE READ, READ ONLY transaction: all that it reads is of one
// moment, while others write. It may take longer than a request may.
func Snapshot[T any](ctx context.Context, db *DB, fn reading[T]) (T, error) {
	return read(ctx, db, fn, snapshot[T])
}

type mode[T any] func(ctx context.Context, conn *pgx.Conn, fn reading[T]) (T, error)

func read[T any](ctx context.Context, db *DB, fn reading[T], in mode[T]) (value T, err error) {
	attempts := 0
	defer func() { db.observe("read", false, attempts, err) }()
	var repeated bool // the one retry of againOnce is spent
	for attempt := 1; ; attempt++ {
		attempts = attempt
		value, err := readOnce(ctx, db, fn, in)
		if err == nil {
			return value, nil
		}
		v, err := classify(err)
		switch {
		case v == again && attempt < maxAttempts && ctx.Err() == nil, v == againOnce && !repeated:
			repeated = repeated || v == againOnce
			pause(ctx, attempt)
			continue
		case v == again:
			return value, domain.Busy().Because(err)
		}
		return value, err
	}
}

func readOnce[T any](ctx context.Context, db *DB, fn reading[T], in mode[T]) (value T, err error) {
	conn, err := db.acquire(ctx)
	if err != nil {
		return value, &failure{stage: acquiring, cause: err}
	}
	defer conn.Release()
	if value, err = in(ctx, conn.Conn(), fn); err != nil {
		return value, db.failed(working, conn, err)
	}
	return value, nil
}

func plain[T any](ctx context.Context, conn *pgx.Conn, fn reading[T]) (T, error) {
	return fn(ctx, sqlc.New(conn))
}

// reporting is set for a report, which takes its time and reads whole tables: what the login's
// settings are against.
const reporting = `SELECT set_config('statement_timeout', '0', true), set_config('enable_seqscan', 'on', true),
	set_config('plan_cache_mode', 'auto', true)`

func snapshot[T any](ctx context.Context, conn *pgx.Conn, fn reading[T]) (value T, err error) {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return value, err
	}
	defer rollback(tx)
	if _, err := tx.Exec(ctx, reporting); err != nil {
		return value, err
	}
	return fn(ctx, sqlc.New(tx))
}
