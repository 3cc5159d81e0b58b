package testdb

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"countersign/sqlc"
)

// Without is a querier that runs each query without a part of its text, such as a lock or a
// predicate: what happens then is what the guard is for.
func Without(t testing.TB, db sqlc.DBTX, guard string) *sqlc.Queries {
	return sqlc.New(&rewriter{t, db, guard})
}

type rewriter struct {
	t     testing.TB
	db    sqlc.DBTX
	guard string
}

func (r *rewriter) rewrite(sql string) string {
	if !strings.Contains(sql, r.guard) {
		r.t.Errorf("the query has no guard %q: %s", r.guard, sql)
	}
	return strings.ReplaceAll(sql, r.guard, "")
}

func (r *rewriter) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return r.db.Exec(ctx, r.rewrite(sql), args...)
}

func (r *rewriter) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return r.db.Query(ctx, r.rewrite(sql), args...)
}

func (r *rewriter) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return r.db.QueryRow(ctx, r.rewrite(sql), args...)
}
