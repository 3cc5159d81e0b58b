package database_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"countersign/internal/testdb"
)

// A foreign key's check that is planned while its table is empty, and so in every new installation, looks
// its row up by an index of those columns alone. An index that has others between them looks as good
// then, and reads every row of the tenant later: the plan is kept.
func TestForeignKeysAreCheckedByTheirOwnIndex(t *testing.T) {
	t.Parallel()
	d := testdb.New(t)
	conn := d.Owner(t)
	type key struct {
		Name, Table    string
		Columns, Types []string
	}
	rows, err := conn.Query(t.Context(), `SELECT c.conname::text, c.confrelid::regclass::text, array_agg(a.attname::text ORDER BY k.ord), array_agg(a.atttypid::regtype::text ORDER BY k.ord)
		FROM pg_constraint c, unnest(c.confkey) WITH ORDINALITY k (attnum, ord), pg_attribute a
		WHERE c.contype = 'f' AND a.attrelid = c.confrelid AND a.attnum = k.attnum GROUP BY c.oid, c.conname, c.confrelid`)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowToStructByPos[key])
	if err != nil || len(keys) < 10 {
		t.Fatalf("%d foreign keys: %v", len(keys), err)
	}
	if _, err := conn.Exec(t.Context(), "SET search_path = public, ops; SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off"); err != nil {
		t.Fatal(err)
	}
	for i, k := range keys {
		var where, nulls []string
		for j, column := range k.Columns {
			where, nulls = append(where, fmt.Sprintf("%s = $%d", column, j+1)), append(nulls, "NULL")
		}
		name := fmt.Sprintf("check_%d", i)
		_, err := conn.Exec(t.Context(), fmt.Sprintf("PREPARE %s (%s) AS SELECT 1 FROM ONLY %s x WHERE %s FOR KEY SHARE OF x",
			name, strings.Join(k.Types, ", "), k.Table, strings.Join(where, " AND ")))
		if err != nil {
			t.Fatal(err)
		}
		index := planned(t, conn, fmt.Sprintf("EXECUTE %s (%s)", name, strings.Join(nulls, ", ")))
		var of []string
		if err := conn.QueryRow(t.Context(), `SELECT array_agg(a.attname::text) FROM pg_index i, pg_attribute a
			WHERE i.indexrelid = $1::text::regclass AND a.attrelid = i.indexrelid`, index).Scan(&of); err != nil {
			t.Fatalf("%s: %q: %v", k.Name, index, err)
		}
		for _, column := range of {
			if !slices.Contains(k.Columns, column) {
				t.Errorf("%s is checked by %s, of %v", k.Name, index, of)
			}
		}
	}
}

// planned is the index that a statement's plan scans.
func planned(t *testing.T, conn *pgx.Conn, statement string) string {
	t.Helper()
	rows, err := conn.Query(context.Background(), "EXPLAIN "+statement)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	_, tail, found := strings.Cut(strings.Join(lines, "\n"), "Scan using ")
	if !found {
		t.Fatalf("%s is planned as %s", statement, lines)
	}
	index, _, _ := strings.Cut(tail, " on ")
	index, _, _ = strings.Cut(index, " ")
	return index
}
