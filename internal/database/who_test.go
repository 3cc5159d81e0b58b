package database_test

import (
	"slices"
	"testing"

	"countersign/internal/testdb"
)

// saysWho reads the catalogue for tables that hold an operation, or a history, and no column that
// must say who did it.
const saysWho = `SELECT c.relname FROM pg_class c
	WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
	  AND (c.relname ~ '_history$' OR EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'operation_id'))
	  AND NOT EXISTS (
		SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname ~ '_by$' AND a.attname <> 'waived_by'
		  AND a.atttypid = 'text'::regtype AND a.attnotnull AND NOT a.attisdropped)
	ORDER BY 1`

// Whatever a request makes or moves says who asked for it: each table that holds an operation or a
// history has a column for that, which cannot be left empty. A table without one is noticed.
func TestEveryRowSaysWho(t *testing.T) {
	t.Parallel()
	d := testdb.New(t)
	silent := func() []string {
		return testdb.Scan[[]string](t, d, `SELECT coalesce(array_agg(relname::text), '{}') FROM (`+saysWho+`) s`)
	}
	if found := silent(); len(found) > 0 {
		t.Errorf("%v do not say who", found)
	}
	d.Exec(t, `CREATE TABLE bad_history (tenant_id uuid NOT NULL)`)
	d.Exec(t, `CREATE TABLE bad (tenant_id uuid NOT NULL, operation_id uuid NOT NULL, created_by text)`)
	d.Exec(t, `CREATE TABLE good (tenant_id uuid NOT NULL, operation_id uuid NOT NULL, created_by text NOT NULL)`)
	if found := silent(); !slices.Equal(found, []string{"bad", "bad_history"}) {
		t.Errorf("found %v", found)
	}
}
