package txn_test

import (
	"fmt"
	"slices"
	"testing"

	"countersign/internal/domain"
	"countersign/internal/testdb"
	"countersign/internal/txn"
)

// What a database error means to the user, and after how many runs, for each SQLSTATE that the
// database may raise: at a statement of a transaction nothing is applied yet; at COMMIT an error
// response is a rollback, except where the connection's end speaks out of it.
func TestWhatADatabaseErrorMeans(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.raise(t)
	db := h.db(t, txn.Settings{})

	type meaning struct {
		code domain.Code
		runs int
	}
	busy, retried := meaning{domain.CodeBusy, 1}, meaning{domain.CodeBusy, 5}
	unavailable, badInput := meaning{domain.CodeUnavailable, 1}, meaning{domain.CodeBadInput, 1}
	defect, unknown := meaning{domain.CodeInternal, 1}, meaning{domain.CodeOutcomeUnknown, 2}
	for _, c := range []struct {
		sqlstate, name     string
		working, committed meaning
	}{
		{"40001", "serialization_failure", retried, retried},
		{"40P01", "deadlock_detected", retried, retried},
		{"25P03", "idle_in_transaction_session_timeout", retried, retried},
		{"57P01", "admin_shutdown", retried, unknown},
		{"57P02", "crash_shutdown", retried, unknown},
		{"57P05", "idle_session_timeout", retried, unknown},
		{"08006", "connection_failure", retried, unknown},
		{"08P01", "protocol_violation, a pooler's word", retried, unknown},

		{"55P03", "lock_not_available", busy, busy},
		{"57014", "query_canceled", busy, busy},
		{"53300", "too_many_connections", busy, busy},
		{"53100", "disk_full", unavailable, unavailable},
		{"25006", "read_only_sql_transaction", unavailable, unavailable},
		{"57P03", "cannot_connect_now", unavailable, unknown},

		{"22P02", "invalid_text_representation", badInput, badInput},
		{"22021", "character_not_in_repertoire", badInput, badInput},
		{"22003", "numeric_value_out_of_range", badInput, badInput},

		{"0A000", "feature_not_supported", meaning{domain.CodeInternal, 2}, meaning{domain.CodeInternal, 2}},
		{"23505", "a unique constraint nobody knows", defect, defect},
		{"23503", "a foreign key nobody knows", defect, defect},
		{"23514", "check_violation", defect, defect},
		{"23502", "not_null_violation", defect, defect},
		{"42501", "insufficient_privilege", defect, defect},
		{"XX000", "internal_error", defect, defect},
	} {
		for _, at := range []where{atStatement, atCommit} {
			for _, f := range forms {
				want := c.committed
				if at == atStatement && f == inTransaction { // one statement is its own COMMIT
					want = c.working
				}
				t.Run(fmt.Sprintf("%s %s %s, %s", c.sqlstate, c.name, at, f), func(t *testing.T) {
					t.Parallel()
					w := h.create(t, demand(at, 1, 9, c.sqlstate))
					a := w.run(t.Context(), db, f)
					a.mustFail(t, want.code)
					w.mustHaveTried(t, want.runs)
					w.mustHaveRows(t, h, 0)
					if want == unknown {
						w.mustBeUnknown(t, a)
					}
				})
			}
		}
	}
}

// Every unique constraint of a tenant's table has a meaning: one that is missing from the switch
// would reach users as an internal error.
func TestEveryUniqueConstraintHasAMeaning(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.raise(t)
	db := h.db(t, txn.Settings{})
	names := testdb.Scan[[]string](t, h.DB, `SELECT array_agg(conname::text ORDER BY conname) FROM pg_constraint
		WHERE contype IN ('u', 'p') AND connamespace = 'public'::regnamespace`)
	for _, name := range append(names, "nobody_knows_key") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := h.create(t, demand(atStatement, 1, 9, "23505 "+name))
			err := c.run(t.Context(), db, oneStatement).err
			if known := code(err) != domain.CodeInternal; known != slices.Contains(names, name) {
				t.Errorf("got %v", err)
			}
		})
	}
}
