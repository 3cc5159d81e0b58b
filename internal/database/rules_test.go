package database_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"countersign/internal/testdb"
)

// The rules that let the same schema run on one server or sharded by tenant, and that keep what
// happens in the statements that we wrote. They are read from the live catalogue, so they hold for
// whatever a migration made and by whatever spelling. Each is shown to fire on schemas that break
// it.
var schemaRules = []struct {
	name   string
	query  string // of the schema $1: a row for each breach, in words
	breaks []string
}{
	{
		name: "every table has tenant_id uuid NOT NULL",
		query: `SELECT c.relname FROM pg_class c
			WHERE c.relnamespace = $1::regnamespace AND c.relkind IN ('r', 'p', 'f', 'm') AND NOT EXISTS (
				SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id'
				AND a.atttypid = 'uuid'::regtype AND a.attnotnull AND NOT a.attisdropped)`,
		breaks: []string{
			`CREATE TABLE bad (id uuid PRIMARY KEY)`,
			`CREATE TABLE bad (tenant_id text NOT NULL)`,
			`CREATE TABLE bad (tenant_id uuid)`,
		},
	},
	{
		name: "every table has a primary key",
		query: `SELECT c.relname FROM pg_class c WHERE c.relnamespace = $1::regnamespace AND c.relkind IN ('r', 'p')
			AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary)`,
		breaks: []string{`CREATE TABLE bad (tenant_id uuid NOT NULL, id uuid NOT NULL, CONSTRAINT bad_key UNIQUE (tenant_id, id))`},
	},
	{
		name: "tenant_id is the first column of every unique index, the primary key included",
		query: `SELECT i.indexrelid::regclass::text FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
			LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]
			WHERE c.relnamespace = $1::regnamespace AND i.indisunique AND a.attname IS DISTINCT FROM 'tenant_id'`,
		breaks: []string{
			`CREATE TABLE bad (tenant_id uuid NOT NULL, id uuid PRIMARY KEY)`,
			`CREATE TABLE bad (tenant_id uuid NOT NULL, id uuid NOT NULL, PRIMARY KEY (id, tenant_id))`,
			`CREATE TABLE bad (tenant_id uuid NOT NULL, code text NOT NULL, UNIQUE (code))`,
			`CREATE TABLE bad (tenant_id uuid NOT NULL, code text NOT NULL); CREATE UNIQUE INDEX ON bad (lower(code), tenant_id)`,
		},
	},
	{
		name: "a foreign key is tenant_id with another column, to tenant_id with another; or tenant_id alone, to ops.tenants (id)",
		query: `SELECT con.conname FROM pg_constraint con
			JOIN pg_attribute own ON own.attrelid = con.conrelid AND own.attnum = con.conkey[1]
			JOIN pg_attribute theirs ON theirs.attrelid = con.confrelid AND theirs.attnum = con.confkey[1]
			WHERE con.connamespace = $1::regnamespace AND con.contype = 'f' AND NOT (own.attname = 'tenant_id' AND CASE
				WHEN con.confrelid = 'ops.tenants'::regclass THEN theirs.attname = 'id' AND cardinality(con.conkey) = 1
				ELSE theirs.attname = 'tenant_id' AND cardinality(con.conkey) > 1 END)`,
		breaks: []string{
			`CREATE TABLE good (tenant_id uuid, id uuid UNIQUE); CREATE TABLE bad (tenant_id uuid, good_id uuid REFERENCES good (id))`,
			`CREATE TABLE good (tenant_id uuid PRIMARY KEY); CREATE TABLE bad (tenant_id uuid REFERENCES good (tenant_id))`,
			`CREATE TABLE good (tenant_id uuid, id uuid, UNIQUE (id, tenant_id));
				CREATE TABLE bad (tenant_id uuid, good_id uuid, FOREIGN KEY (good_id, tenant_id) REFERENCES good (id, tenant_id))`,
			`CREATE TABLE good (owner uuid, id uuid, UNIQUE (owner, id));
				CREATE TABLE bad (tenant_id uuid, good_id uuid, FOREIGN KEY (tenant_id, good_id) REFERENCES good (owner, id))`,
			`CREATE TABLE bad (customer_id uuid REFERENCES ops.tenants (id))`,
		},
	},
	{
		name: "nothing happens behind a statement's back: no trigger, no rule",
		query: `SELECT g.tgname FROM pg_trigger g JOIN pg_class c ON c.oid = g.tgrelid WHERE c.relnamespace = $1::regnamespace AND NOT g.tgisinternal
			UNION ALL SELECT w.rulename FROM pg_rewrite w JOIN pg_class c ON c.oid = w.ev_class WHERE c.relnamespace = $1::regnamespace`,
		breaks: []string{
			`CREATE TABLE bad (n int); CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
				CREATE TRIGGER bad_touch BEFORE UPDATE ON bad FOR EACH ROW EXECUTE FUNCTION touch()`,
			`CREATE TABLE bad (n int); CREATE RULE bad_rule AS ON DELETE TO bad DO INSTEAD NOTHING`,
		},
	},
	{
		name: "a function pins its search_path: it means the same whoever calls it",
		query: `SELECT p.proname FROM pg_proc p WHERE p.pronamespace = $1::regnamespace
			AND NOT EXISTS (SELECT FROM unnest(p.proconfig) AS setting WHERE starts_with(setting, 'search_path='))`,
		breaks: []string{
			`CREATE FUNCTION bad() RETURNS int LANGUAGE sql AS 'SELECT 1'`,
			`CREATE FUNCTION bad() RETURNS int LANGUAGE sql SET work_mem = '4MB' AS 'SELECT 1'`,
		},
	},
	{
		name: "no sequence numbers anything: none by itself, by serial or by identity",
		query: `SELECT c.relname FROM pg_class c WHERE c.relnamespace = $1::regnamespace AND c.relkind = 'S'
			UNION ALL SELECT format('%s.%s', c.relname, a.attname) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
			WHERE c.relnamespace = $1::regnamespace AND a.attidentity <> ''`,
		breaks: []string{
			`CREATE SEQUENCE bad`, `CREATE TABLE bad (n serial)`, `CREATE TABLE bad (n bigint GENERATED BY DEFAULT AS IDENTITY)`,
		},
	},
	{
		// Its ids and times are made once in Go, before the transaction, and are the same on every run.
		name: "no default comes from a function that may answer differently",
		query: `SELECT format('%s.%s', c.relname, a.attname) FROM pg_attrdef d
			JOIN pg_class c ON c.oid = d.adrelid JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
			WHERE c.relnamespace = $1::regnamespace AND (d.adbin::text ~ 'SQLVALUEFUNCTION|NEXTVALUEEXPR' OR EXISTS (
				SELECT FROM regexp_matches(d.adbin::text, ':(?:op)?funcid (\d+)', 'g') AS called JOIN pg_proc p ON p.oid = called[1]::oid
				WHERE p.provolatile <> 'i'))`,
		breaks: []string{
			`CREATE TABLE bad (id uuid DEFAULT gen_random_uuid())`, `CREATE TABLE bad (at timestamptz DEFAULT now())`,
			`CREATE TABLE bad (at timestamptz DEFAULT CURRENT_TIMESTAMP)`, `CREATE TABLE bad (at timestamptz DEFAULT clock_timestamp() + '1 day')`,
			`CREATE TABLE bad (n int DEFAULT 1 + floor(random() * 9))`, `CREATE SEQUENCE numbers; CREATE TABLE bad (n bigint DEFAULT nextval('numbers'))`,
		},
	},
	{
		// An error names its constraint: the code that maps it and the person who reads it know by that
		// what was broken. PostgreSQL's own names say which columns, at best.
		name: "a constraint is named for its table and for what it means",
		query: `SELECT con.conname FROM pg_constraint con JOIN pg_class c ON c.oid = con.conrelid
			CROSS JOIN LATERAL (SELECT string_agg(a.attname, '_' ORDER BY k.ord) AS columns
				FROM unnest(con.conkey) WITH ORDINALITY AS k (attnum, ord) JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum) named
			WHERE con.connamespace = $1::regnamespace AND con.contype IN ('c', 'f', 'u', 'p', 'x') AND (
				NOT starts_with(con.conname, c.relname || '_')
				OR con.contype = 'c' AND con.conname ~ '_check[0-9]*$'
				OR con.contype IN ('u', 'f') AND con.conname ~ format('^%s_%s_f?key[0-9]*$', c.relname, named.columns))`,
		breaks: []string{
			`CREATE TABLE bad (n int CHECK (n > 0))`, `CREATE TABLE bad (n int, CHECK (n > 0), CHECK (n < 9))`,
			`CREATE TABLE bad (n int CONSTRAINT positive CHECK (n > 0))`, `CREATE TABLE bad (tenant_id uuid, code text, UNIQUE (tenant_id, code))`,
			`CREATE TABLE bad (tenant_id uuid REFERENCES ops.tenants (id))`, `CREATE TABLE bad (n int CONSTRAINT key PRIMARY KEY)`,
		},
	},
	{
		// One that is unique for some rows only is no equal: a foreign key's check cannot use it.
		name: "the primary key is made after the other unique indexes of its table, see migrations/00001",
		query: `SELECT u.indexrelid::regclass::text FROM pg_index p JOIN pg_class c ON c.oid = p.indrelid
			JOIN pg_index u ON u.indrelid = p.indrelid AND u.indisunique AND u.indpred IS NULL AND u.indexrelid > p.indexrelid
			WHERE c.relnamespace = $1::regnamespace AND p.indisprimary`,
		breaks: []string{`CREATE TABLE bad (tenant_id uuid, id uuid, n int, PRIMARY KEY (tenant_id, id)); ALTER TABLE bad ADD UNIQUE (tenant_id, n)`},
	},
}

func TestSchemaHoldsTheShardRules(t *testing.T) {
	t.Parallel()
	d := testdb.New(t)
	conn := d.Owner(t)
	if tables := breaches(t, conn, "SELECT relname FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind = 'r'", "public"); len(tables) == 0 {
		t.Fatal("there is no table to look at")
	}
	for i, r := range schemaRules {
		if found := breaches(t, conn, r.query, "public"); len(found) > 0 {
			t.Errorf("%s: broken by %s", r.name, strings.Join(found, ", "))
		}
		for j, bad := range r.breaks {
			schema := fmt.Sprintf("bad_%d_%d", i, j)
			d.Exec(t, "CREATE SCHEMA "+schema)
			if _, err := conn.PgConn().Exec(t.Context(), "SET search_path = "+schema+"; "+bad).ReadAll(); err != nil {
				t.Fatalf("%s: %v", bad, err)
			}
			if found := breaches(t, conn, r.query, schema); len(found) == 0 {
				t.Errorf("%s: does not notice %s", r.name, bad)
			}
		}
	}
}

// breaches runs a rule on a schema.
func breaches(t *testing.T, conn *pgx.Conn, query, schema string) []string {
	t.Helper()
	rows, err := conn.Query(context.Background(), query, schema)
	if err != nil {
		t.Fatal(err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return found
}

// notSharded are the tables that are not sharded by tenant, each for a reason.
var notSharded = []string{
	"ops.tenants",          // what the shards are made of
	"ops.goose_db_version", // the record of migrations

	// Keyed as the provider keys them; whose an event is, is known once its reference is.
	"ops.payment_events",

	// The simulated provider's side of the wire.
	"ops.simulated_payments", "ops.simulated_refunds",

	// The jobs are the server's, not a tenant's.
	"ops.river_job", "ops.river_leader", "ops.river_migration", "ops.river_notification", "ops.river_queue",
}

// A table outside of the schema public escapes the rules above, so each is listed.
func TestOnlyListedTablesAreNotSharded(t *testing.T) {
	t.Parallel()
	d := testdb.New(t)
	unlisted := func() []string {
		return testdb.Scan[[]string](t, d, `SELECT coalesce(array_agg(format('%s.%s', n.nspname, c.relname)), '{}')
			FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
			WHERE c.relkind IN ('r', 'p', 'f', 'm') AND n.nspname NOT IN ('public', 'pg_catalog', 'pg_toast', 'information_schema')
			  AND NOT format('%s.%s', n.nspname, c.relname) = ANY ($1)`, notSharded)
	}
	if found := unlisted(); len(found) > 0 {
		t.Errorf("not sharded, and not listed: %v", found)
	}
	for _, table := range notSharded {
		if !testdb.Scan[bool](t, d, "SELECT to_regclass($1) IS NOT NULL", table) {
			t.Errorf("%s is listed and does not exist", table)
		}
	}
	d.Exec(t, "CREATE TABLE ops.notes (n int)")
	d.Exec(t, "CREATE SCHEMA aside")
	d.Exec(t, "CREATE TABLE aside.notes (n int)")
	if found := unlisted(); len(found) != 2 {
		t.Errorf("two unlisted tables, found %v", found)
	}
}
