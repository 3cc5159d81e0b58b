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
	return sqlc.New(Weaken(t, db, "", guard, ""))
}

// Weaken is a database that runs the query with this sqlc name ("" is every query) with a part of its
// text replaced, and all others as they are. A predicate with a parameter, which cannot just be left
// out, is replaced by one that holds of every row.
func Weaken(t testing.TB, db sqlc.DBTX, query, guard, by string) sqlc.DBTX {
	if query != "" {
		query = "-- name: " + query + " "
	}
	return &rewriter{t, db, query, guard, by}
}

type rewriter struct {
	t                testing.TB
	db               sqlc.DBTX
	query, guard, by string
}

func (r *rewriter) rewrite(sql string) string {
	if !strings.HasPrefix(sql, r.query) {
		return sql
	}
	if !strings.Contains(sql, r.guard) {
		r.t.Errorf("the query has no guard %q: %s", r.guard, sql)
	}
	return strings.ReplaceAll(sql, r.guard, r.by)
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
