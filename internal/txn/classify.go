package txn

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"countersign/internal/domain"
)

// stage is how far an attempt had come when it failed.
type stage int

const (
	acquiring  stage = iota // no connection yet
	working                 // COMMIT not sent: nothing is applied
	committing              // COMMIT sent: whether it is applied is the server's to say
)

// failure is an attempt's error with what decides its meaning.
type failure struct {
	stage          stage
	cause          error
	connectionLost bool
}

func (f *failure) Error() string { return f.cause.Error() }
func (f *failure) Unwrap() error { return f.cause }

// failed is the failure of an attempt that had a connection. What ended that connection or made its
// prepared statements stale (a restart, a fail-over, a migration) did the same to the idle ones, and
// each further attempt would fail on another of them: the pool drops them all.
func (db *DB) failed(at stage, conn *pgxpool.Conn, err error) error {
	f := &failure{stage: at, cause: err, connectionLost: conn.Conn().IsClosed()}
	if f.connectionLost && !isContext(err) || isStalePlan(err) {
		db.pool.Reset()
	}
	return f
}

// verdict is what an error means for the write.
type verdict int

const (
	answer    verdict = iota // the error is the answer
	decided                  // the domain, or a constraint that speaks for it, has refused
	again                    // nothing is applied: run the whole transaction again
	againOnce                // the same, once
	replayed                 // an earlier run of the operation made the row: read it
	refused                  // a guard found no row: look whether it was our own run, else again
	lost                     // applied or not: nobody said
)

// classify is the one table of what a database error means. It returns the error in the domain's
// terms, with the cause for the log.
func classify(err error) (verdict, error) {
	var f *failure
	if !errors.As(err, &f) {
		return answer, err
	}
	var pgErr *pgconn.PgError
	switch {
	case errors.Is(err, ErrRefused):
		return refused, err
	case errors.As(err, &pgErr):
		return ofCode(pgErr, f.stage)
	case isRefusal(err):
		return decided, err
	case errors.Is(err, pgx.ErrNoRows), errors.Is(err, pgx.ErrTxCommitRollback):
		return answer, err
	case f.stage == acquiring && errors.Is(err, context.DeadlineExceeded):
		return answer, domain.Busy().Because(err)
	case f.stage == acquiring:
		return answer, domain.Unavailable().Because(err)
	case f.stage == committing && (f.connectionLost || isContext(err)):
		return lost, err
	case isContext(err):
		return answer, domain.Busy().Because(err)
	case f.connectionLost:
		return again, err
	}
	return answer, err
}

// ofCode is what an error response of the server means.
func ofCode(e *pgconn.PgError, at stage) (verdict, error) {
	switch {
	case at == committing && (pgerrcode.IsConnectionException(e.Code) || strings.HasPrefix(e.Code, "57P0")):
		return lost, e
	case e.Code == pgerrcode.TooManyConnections, e.Code == pgerrcode.LockNotAvailable, e.Code == pgerrcode.QueryCanceled:
		return answer, domain.Busy().Because(e)
	case e.Code == pgerrcode.CannotConnectNow, e.Code == pgerrcode.DiskFull, e.Code == pgerrcode.ReadOnlySQLTransaction,
		at == acquiring:
		return answer, domain.Unavailable().Because(e)
	case e.Code == pgerrcode.SerializationFailure, e.Code == pgerrcode.DeadlockDetected,
		strings.HasPrefix(e.Code, "57P0"), e.Code == pgerrcode.IdleInTransactionSessionTimeout,
		pgerrcode.IsConnectionException(e.Code):
		return again, e
	case e.Code == pgerrcode.FeatureNotSupported: // a cached plan from before a migration
		return againOnce, e
	case e.Code == pgerrcode.UniqueViolation, e.Code == pgerrcode.ForeignKeyViolation, e.Code == pgerrcode.CheckViolation:
		return ofConstraint(e)
	case pgerrcode.IsDataException(e.Code):
		return answer, domain.BadInput("the input has a value that cannot be stored").Because(e)
	}
	return answer, e
}

// isStalePlan says whether a prepared statement no longer fits its tables.
func isStalePlan(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && pgErr.Code == pgerrcode.FeatureNotSupported
}

func isContext(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// isRefusal says whether the domain has decided.
func isRefusal(err error) bool {
	var user domain.UserError
	return errors.As(err, &user)
}
