package database_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"countersign/internal/database"
	"countersign/internal/testdb"
	"countersign/migrations"
)

// quick is how much longer than the one that migrates a replica may take to start. It takes a fraction
// of a second; the rest is for a busy machine.
const quick = 10 * time.Second

// Replicas that are rolled out together on an empty database all start: one migrates, the others
// find it done. As processes, and as goroutines of one.
func TestReplicasMigrateTogether(t *testing.T) {
	t.Parallel()
	t.Run("processes", func(t *testing.T) {
		t.Parallel()
		migrateTogether(t, func(ctx context.Context, target string) (int, error) {
			cmd := exec.CommandContext(ctx, os.Args[0])
			// The race detector makes a process linger for a second at its end.
			cmd.Env = append(os.Environ(), migrateVariable+"="+target, "GORACE=atexit_sleep_ms=0")
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				return 0, errors.New(err.Error() + ": " + stderr.String())
			}
			return strconv.Atoi(strings.TrimSpace(string(out)))
		})
	})
	t.Run("goroutines", func(t *testing.T) {
		t.Parallel()
		migrateTogether(t, migrate)
	})
}

// migrateTogether runs ten replicas on an empty database. They overlap for certain: the test holds
// the migration lock until each of them has seen that the schema is missing. Without the lock some
// of them fail at objects that another is making.
func migrateTogether(t *testing.T, replica func(ctx context.Context, target string) (int, error)) {
	const replicas = 10
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	d := testdb.Empty(t)
	lock := d.Owner(t)
	if _, err := lock.Exec(ctx, "SELECT pg_advisory_lock($1)", database.MigrationLock); err != nil {
		t.Fatal(err)
	}

	type result struct {
		applied int
		err     error
		took    time.Duration // since the schema was free
	}
	results := make(chan result, replicas)
	free := make(chan time.Time, 1)
	free <- time.Time{}
	for range replicas {
		go func() {
			applied, err := replica(ctx, d.URL)
			at := <-free
			free <- at
			results <- result{applied, err, time.Since(at)}
		}()
	}
	watch := d.Owner(t)
	testdb.Eventually(t, func() bool {
		var waiting int
		err := watch.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
			AND pid NOT IN (pg_backend_pid(), $1) AND query ~* 'pg_try_advisory_xact_lock|begin|rollback'`, lock.PgConn().PID()).Scan(&waiting)
		return err == nil && waiting == replicas || len(results) > 0
	})
	<-free
	free <- time.Now()
	if err := lock.Close(ctx); err != nil {
		t.Fatal(err)
	}

	migrated := 0
	var migrating, longest time.Duration
	for range replicas {
		r := <-results
		if r.err != nil {
			t.Errorf("a replica could not start: %v", r.err)
			continue
		}
		longest = max(longest, r.took)
		if r.applied > 0 {
			migrated++
			migrating = r.took
		}
	}
	if longest > migrating+quick {
		t.Errorf("a replica took %v, and the one that migrated %v", longest, migrating)
	}
	if migrated != 1 {
		t.Errorf("%d replicas migrated, want 1", migrated)
	}
	twice := testdb.Scan[int](t, d, "SELECT count(*) - count(DISTINCT version_id) FROM ops.goose_db_version")
	if pending, err := database.Pending(t.Context(), d.Owner(t)); err != nil || pending || twice != 0 {
		t.Errorf("pending %v, %d migrations ran twice (%v), want a current schema", pending, twice, err)
	}
}

// A replica that starts on a current database only reads: it starts where it may not write, and
// while another has the migration lock. It proves the look that comes before the lock: without it
// the migration is tried.
func TestMigrateOfACurrentDatabaseOnlyReads(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), quick)
	defer cancel()
	d := testdb.Empty(t)
	readOnly := with(d.URL, "default_transaction_read_only", "on")
	if _, err := migrate(ctx, readOnly); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Fatalf("migrating an empty database read-only: %v, want a refusal", err)
	}
	all, _ := fs.Glob(migrations.Files, "*.sql")
	if applied, err := migrate(ctx, d.URL); err != nil || applied != len(all) {
		t.Fatalf("migrated %d: %v", applied, err)
	}
	if _, err := d.Owner(t).Exec(ctx, "SELECT pg_advisory_lock($1)", database.MigrationLock); err != nil {
		t.Fatal(err)
	}
	if applied, err := migrate(ctx, readOnly); err != nil || applied != 0 {
		t.Errorf("migrated %d again: %v", applied, err)
	}
}

// A server knows whether its database is behind: readiness says so. A database that a newer build
// has migrated is not behind: during a roll-out old replicas work on beside the new ones.
func TestPending(t *testing.T) {
	t.Parallel()
	pending := func(d *testdb.DB) bool {
		t.Helper()
		pending, err := database.Pending(t.Context(), d.Owner(t))
		if err != nil {
			t.Fatal(err)
		}
		return pending
	}
	if !pending(testdb.Empty(t)) {
		t.Error("an empty database is not pending")
	}
	d := testdb.New(t)
	if pending(d) {
		t.Error("a migrated database is pending")
	}
	if got, err := database.Pending(t.Context(), d.Pool); err != nil || got {
		t.Errorf("as the server works: pending %v, %v", got, err)
	}
	d.Exec(t, "INSERT INTO ops.goose_db_version (version_id, is_applied) VALUES ($1, true)", database.Latest+1)
	if pending(d) {
		t.Error("a database with a newer schema is pending")
	}
	if applied, err := migrate(t.Context(), with(d.URL, "default_transaction_read_only", "on")); err != nil || applied != 0 {
		t.Errorf("a newer schema was migrated: %d, %v", applied, err)
	}
	d.Exec(t, "DELETE FROM ops.goose_db_version WHERE version_id >= $1", database.Latest)
	if !pending(d) {
		t.Error("a database that lacks the newest migration is not pending")
	}
}
