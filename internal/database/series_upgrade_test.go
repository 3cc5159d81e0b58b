package database_test

import (
	"testing"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/testdb"
	"countersign/internal/txn"
	"countersign/migrations"
)

// Series that were made before they could reset stay as they were: they never reset, hold every
// number, and stand in the places that a new one is compared with.
func TestSeriesFromBeforeResetsStayAsTheyWere(t *testing.T) {
	t.Parallel()
	d := testdb.New(t)
	s := invoicing.New(txn.New(d.Pool, txn.Settings{}))
	for _, handle := range []string{"one", "two"} {
		tenant, _, err := s.CreateTenant(t.Context(), handle, handle)
		if err != nil {
			t.Fatal(err)
		}
		issue(t, s, auth.Caller{TenantID: tenant.ID, Role: domain.RoleAdmin})
	}
	d.Exec(t, `DROP TABLE series_places, series_periods CASCADE;
		ALTER TABLE series_counters DROP COLUMN max_number CASCADE;
		ALTER TABLE invoice_series DROP COLUMN reset, DROP COLUMN max_length, DROP COLUMN allowed_characters, DROP COLUMN capacity, DROP COLUMN preset`)
	text, err := migrations.Files.ReadFile("00006_series.sql")
	if err != nil {
		t.Fatal(err)
	}
	d.Exec(t, string(text))
	for sql, want := range map[string]string{
		"SELECT string_agg(DISTINCT concat_ws(' ', reset, max_length, allowed_characters, capacity, coalesce(preset, 'none')), ', ') FROM invoice_series": "NEVER 64 PLAIN 999999 none",
		"SELECT string_agg(DISTINCT max_number::text, ', ') FROM series_counters":                                                                         "999999999999999999",
		`SELECT string_agg(places, ', ') FROM (SELECT string_agg(p.place || ' ' || s.code, ' ' ORDER BY p.place) AS places FROM series_places p
			JOIN invoice_series s ON s.tenant_id = p.tenant_id AND s.id = p.series_id GROUP BY p.tenant_id) of_tenant`: "1 INV 2 CN 3 A, 1 INV 2 CN 3 A",
		"SELECT string_agg(next_number::text, ' ' ORDER BY next_number) FROM series_counters": "1 1 1 1 2 2",
	} {
		if got := testdb.Scan[string](t, d, sql); got != want {
			t.Errorf("%s: %s, want %s", sql, got, want)
		}
	}
}
