package database_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"countersign/internal/testdb"
)

// Proves database.Planning: a foreign key's check that is planned while its table is tiny does not
// read the whole table, as it would, and go on doing while the table grows, with the planner's
// default.
func TestAChecksPlanIsNoScan(t *testing.T) {
	t.Parallel()
	d := testdb.New(t)
	d.Exec(t, `
		INSERT INTO ops.tenants (id, handle, name, created_at) VALUES ('00000000-0000-7000-8000-000000000001', 'acme', 'Acme', now());
		ANALYZE ops.tenants`)
	for _, c := range []struct {
		setting string
		scans   bool
	}{{"", false}, {"SET enable_seqscan = on", true}} {
		conn, err := pgx.Connect(t.Context(), d.URL)
		if err != nil {
			t.Fatal(err)
		}
		if got := scansOfCheck(t, conn, c.setting) > 0; got != c.scans {
			t.Errorf("with %q: the table is scanned: %v, want %v", c.setting, got, c.scans)
		}
		_ = conn.Close(context.Background())
	}
}

// scansOfCheck is how often inserting a token, in a transaction that is rolled back, scans the
// table of tenants.
func scansOfCheck(t *testing.T, conn *pgx.Conn, setting string) (scans int) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), setting); err != nil {
		t.Fatal(err)
	}
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = tx.Exec(t.Context(), `INSERT INTO access_tokens (tenant_id, id, name, role, secret_hash, hint, created_at, updated_at, operation_id, operation_fingerprint, created_by)
		VALUES ('00000000-0000-7000-8000-000000000001', gen_random_uuid(), '', 'ADMIN', sha256('x'), '', now(), now(), gen_random_uuid(), '', 'test')`)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.QueryRow(t.Context(), "SELECT seq_scan FROM pg_stat_xact_all_tables WHERE relid = 'ops.tenants'::regclass").Scan(&scans); err != nil {
		t.Fatal(err)
	}
	return scans
}

// Proves database.Planning: a statement over arrays is planned once, while the planner by itself
// would plan it again for each run, because it looks cheaper where their length is known.
func TestAStatementOverArraysIsPlannedOnce(t *testing.T) {
	t.Parallel()
	d := testdb.New(t)
	for _, c := range []struct {
		setting string
		again   bool
	}{{"", false}, {"SET plan_cache_mode = auto", true}} {
		conn, err := pgx.Connect(t.Context(), d.URL)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), c.setting+"; PREPARE numbers (bigint[]) AS SELECT * FROM unnest($1) JOIN generate_series(1, 1000) n ON true"); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if _, err := conn.Exec(t.Context(), "EXECUTE numbers ('{1}')"); err != nil {
				t.Fatal(err)
			}
		}
		var again bool
		if err := conn.QueryRow(t.Context(), "SELECT custom_plans > 5 FROM pg_prepared_statements WHERE name = 'numbers'").Scan(&again); err != nil {
			t.Fatal(err)
		}
		if again != c.again {
			t.Errorf("with %q: planned again and again: %v, want %v", c.setting, again, c.again)
		}
		_ = conn.Close(context.Background())
	}
}
