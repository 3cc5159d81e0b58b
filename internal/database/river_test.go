package database_test

import (
	"log/slog"
	"testing"
	"time"

	"countersign/internal/database"
	"countersign/internal/jobs"
	"countersign/internal/metering"
	"countersign/internal/ordering"
	"countersign/internal/payment"
	"countersign/internal/testdb"
	"countersign/internal/txn"
)

// The jobs run on production's login, a plain member of the runtime role: it finds their tables
// made, leads, works on a job and keeps its record.
func TestMemberRunsTheJobs(t *testing.T) {
	t.Parallel()
	d := testdb.New(t)
	member := newLogin(t, d, "IN ROLE "+database.RuntimeRole)
	if _, err := database.Migrate(t.Context(), d.URL, member.name, quiet); err != nil { // its time-outs
		t.Fatal(err)
	}
	pool := d.PoolAt(t, member.url, 4)
	db := txn.New(pool, txn.Settings{})
	complaints := make(chan string, 100)
	runner, err := jobs.Start(t.Context(), pool, ordering.New(db, payment.NewSimulated(db, 0, nil)), metering.New(db), time.Second, slog.New(slog.NewTextHandler(line(complaints), nil)), nil)
	if err != nil {
		t.Fatal(err)
	}
	testdb.Eventually(t, func() bool {
		return testdb.Scan[int](t, d, "SELECT count(*) FROM ops.river_job WHERE state = 'completed' AND kind = 'reconcile'") > 0
	})
	if err := runner.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	close(complaints)
	for complaint := range complaints {
		t.Errorf("the jobs complain: %s", complaint)
	}
}

// line is a writer that passes on what it is given.
type line chan<- string

func (l line) Write(text []byte) (int, error) {
	l <- string(text)
	return len(text), nil
}

// A migration that breaks off at the jobs' tables leaves the database pending, however current our
// own tables were before, and the next start finishes it. It proves that River's come before our
// last one: behind it, they would be missing for good.
func TestMigrationBrokenOffAtTheJobs(t *testing.T) {
	t.Parallel()
	d := testdb.Empty(t)
	d.Exec(t, "CREATE SCHEMA ops; CREATE TABLE ops.river_job (n int)")
	if _, err := migrate(t.Context(), d.URL); err == nil {
		t.Fatal("the jobs' tables were migrated over one of another form")
	}
	if pending, err := database.Pending(t.Context(), d.Owner(t)); err != nil || !pending {
		t.Errorf("pending %v, %v after a migration that broke off", pending, err)
	}
	d.Exec(t, "DROP TABLE ops.river_job")
	if _, err := migrate(t.Context(), d.URL); err != nil {
		t.Fatal(err)
	}
	if pending, err := database.Pending(t.Context(), d.Owner(t)); err != nil || pending {
		t.Errorf("pending %v, %v after the next start", pending, err)
	}
	if can := testdb.Scan[bool](t, d, "SELECT has_table_privilege($1, 'ops.river_job', 'DELETE')", database.RuntimeRole); !can {
		t.Error("the server cannot use the jobs' tables")
	}
}
