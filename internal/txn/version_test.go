package txn_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/internal/domain"
	"countersign/internal/txn"
)

// A row updated 1000 times under its version, by a clock that steps back: each guard matches the
// token that was read before, whether times travel as text, which PostgreSQL rounds to
// microseconds, or in binary, which truncates.
func TestAVersionSurvivesTheDatabase(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	conn := h.Owner(t)
	_, err := conn.Exec(t.Context(), "CREATE TEMPORARY TABLE hot (updated_at timestamptz NOT NULL)")
	check(t, err)
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeCacheStatement} {
		// Half a microsecond and more is what rounding and truncating disagree about.
		now := time.Date(2026, 11, 29, 12, 0, 0, 999, time.UTC)
		version := domain.VersionAt(now)
		_, err := conn.Exec(t.Context(), "INSERT INTO hot VALUES ($1)", mode, version)
		check(t, err)
		for i := range 1000 {
			now = now.Add(777 * time.Nanosecond)
			if i%10 == 0 {
				now = now.Add(-time.Hour)
			}
			next := version.Next(now)
			var stored domain.Version
			err := conn.QueryRow(t.Context(), "UPDATE hot SET updated_at = $1 WHERE updated_at = $2 RETURNING updated_at", mode, next, version).
				Scan(&stored)
			if err != nil || !stored.Equal(next.Time) || !stored.After(version.Time) {
				t.Fatalf("%v, update %d: %v came back as %v after %v: %v", mode, i, next, stored, version, err)
			}
			version = stored
		}
		_, err = conn.Exec(t.Context(), "DELETE FROM hot")
		check(t, err)
	}
}

// The moment of a write is its clock's, in the precision that the database keeps; it is fixed for
// all of the transaction, and taken anew by the next run.
func TestAWriteHasOneMoment(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.raise(t)
	readings := 0
	db := h.db(t, txn.Settings{Clock: func() time.Time {
		readings++
		return time.Date(2026, 11, 29, 12, 0, readings, 999, time.FixedZone("", 3600))
	}})
	c := h.create(t, demand(atCommit, 1, 1, "40001"))
	a := c.run(t.Context(), db, inTransaction)
	c.mustBeOwn(t, h, a, 2)
	row := a.out.Value
	want := time.Date(2026, 11, 29, 11, 0, 2, 0, time.UTC)
	if readings != 2 || !row.CreatedAt.Equal(want) || !row.UpdatedAt.Equal(want) {
		t.Errorf("the clock was read %d times, the row is of %v and %v, want %v", readings, row.CreatedAt, row.UpdatedAt, want)
	}
}
