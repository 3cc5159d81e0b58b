package database_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"countersign/internal/testdb"
)

var (
	ofOneTenant = regexp.MustCompile(`(?i)\btenant_id = @tenant_id\b|\bINSERT INTO \w+ \(\s*tenant_id\b[^;]*(\bVALUES \(\s*@tenant_id\b|\)\s*SELECT @tenant_id,[^;]*\bFROM ROWS FROM \(\s*unnest)`)
	changes     = regexp.MustCompile(`(?i)\bUPDATE\s+(ONLY\s+)?[\w."]+(\s+(AS\s+)?\w+)?\s+SET\b|\bDELETE\s+FROM\b`)
	forUpdate   = regexp.MustCompile(`(?i)\bFOR\s+UPDATE\b`)
	from        = regexp.MustCompile(`(?i)\bFROM\b`)
	onCounter   = regexp.MustCompile(`(?i)^FROM (series_counters|api_keys)( \w+)?\s+WHERE\b[^;]*$`)
	clock       = regexp.MustCompile(`^(now|(clock|transaction|statement)_timestamp|timeofday|current_\w+|localtime\w*)$`)
)

// queryRules are what a query must not do.
var queryRules = []struct {
	name   string
	broken func(s statement) bool
	breaks []string
	keeps  []string
}{
	{
		name: "a query names one tenant by equality, or its name begins with Every",
		broken: func(s statement) bool {
			return !ofOneTenant.MatchString(s.sql) && !strings.HasPrefix(s.name, "Every")
		},
		breaks: []string{
			"-- name: GetInvoice :one\nSELECT * FROM invoices WHERE id = @id;",
			"-- name: GetInvoices :many\n-- tenant_id = @tenant_id\nSELECT * FROM invoices WHERE tenant_id = ANY(@tenant_ids);",
			"-- name: GetInvoices :many\nSELECT * FROM invoices i JOIN customers c ON c.tenant_id = i.tenant_id;",
			"-- name: CopyCustomer :one\nINSERT INTO customers (tenant_id, id) SELECT tenant_id, @id::uuid FROM customers RETURNING *;",
			"-- name: CopyCustomer :one\nINSERT INTO customers (tenant_id, id) SELECT @tenant_id, id FROM customers RETURNING *;",
		},
		keeps: []string{
			"-- name: EveryInvoice :many\nSELECT * FROM invoices;",
			"-- name: InsertCustomer :one\nINSERT INTO customers (\n  tenant_id, id\n)\nVALUES (\n  @tenant_id, @id\n)\nRETURNING *;",
			"-- name: InsertCustomers :many\nINSERT INTO customers (tenant_id, id)\nSELECT @tenant_id, c.id\nFROM ROWS FROM (unnest(@ids::uuid[])) AS c (id)\nRETURNING *;",
		},
	},
	{
		name: "an UPDATE or DELETE returns its row or its count",
		broken: func(s statement) bool {
			return strings.HasSuffix(s.command, "exec") && changes.MatchString(s.sql)
		},
		breaks: []string{
			"-- name: Pay :exec\nUPDATE invoices SET status = 'PAID' WHERE tenant_id = @tenant_id;",
			"-- name: Pay :exec\nUPDATE public.invoices AS i\nSET status = 'PAID' WHERE tenant_id = @tenant_id;",
			"-- name: Pay :batchexec\nUPDATE invoices i SET status = 'PAID' WHERE i.tenant_id = @tenant_id;",
			"-- name: Forget :exec\nDELETE FROM invoices WHERE tenant_id = @tenant_id;",
		},
		keeps: []string{
			"-- name: Pay :execrows\nUPDATE invoices SET status = 'PAID' WHERE tenant_id = @tenant_id;",
			"-- name: Lock :exec\nSELECT FROM invoices WHERE tenant_id = @tenant_id FOR UPDATE;",
		},
	},
	{
		name: "time and chance come from outside: no clock, no volatile function",
		broken: func(s statement) bool {
			return s.some(func(c call) bool { return c.Volatility == "v" || clock.MatchString(strings.Fields(c.Name)[0]) })
		},
		breaks: []string{
			"-- name: A :one\nSELECT clock_timestamp();", "-- name: A :one\nSELECT NOW ();", "-- name: A :one\nSELECT CURRENT_DATE;",
			"-- name: A :one\nSELECT random();", "-- name: A :one\nSELECT gen_random_uuid();", "-- name: A :one\nSELECT nextval(@sequence);",
			"-- name: A :one\nSELECT @now::timestamptz < now();",
		},
		keeps: []string{"-- name: A :one\n-- not now()\nSELECT @now::timestamptz < sqlc.arg('then')::timestamptz, cardinality(@ids::uuid[]);"},
	},
	{
		// A sharded database refuses such a function, or operator, over a column.
		name: "an UPDATE calls only what always answers alike",
		broken: func(s statement) bool {
			return changes.MatchString(s.sql) && s.some(func(c call) bool { return c.Volatility != "i" })
		},
		breaks: []string{
			"-- name: A :one\nUPDATE invoices SET status = to_char(created_at, 'YYYY') WHERE tenant_id = @tenant_id RETURNING *;",
			"-- name: A :one\nUPDATE invoices SET updated_at = updated_at + interval '1 day' WHERE tenant_id = @tenant_id RETURNING *;",
		},
		keeps: []string{
			"-- name: A :one\nUPDATE invoices SET status = lower(status) WHERE tenant_id = @tenant_id RETURNING *;",
			"-- name: A :one\nSELECT to_char(created_at, 'YYYY') FROM invoices WHERE tenant_id = @tenant_id;",
		},
	},
	{
		// Elsewhere it would wait for, and deadlock with, the foreign keys' checks: FOR NO KEY UPDATE. A
		// key that is being revoked is to wait for the usage that refers to it.
		name: "FOR UPDATE locks the series' counter, or a key, and nothing else",
		broken: func(s statement) bool {
			for _, at := range forUpdate.FindAllStringIndex(s.sql, -1) {
				before := level(s.sql[:at[0]])
				if starts := from.FindAllStringIndex(before, -1); len(starts) == 0 || !onCounter.MatchString(before[starts[len(starts)-1][0]:]) {
					return true
				}
			}
			return false
		},
		breaks: []string{
			"-- name: A :one\nSELECT * FROM customers WHERE tenant_id = @tenant_id FOR UPDATE;",
			"-- name: A :one\nSELECT * FROM series_counters c JOIN invoices i USING (tenant_id) WHERE c.tenant_id = @tenant_id\nFOR  UPDATE;",
			"-- name: A :one\nSELECT * FROM customers c WHERE c.tenant_id = @tenant_id AND EXISTS (SELECT FROM series_counters s WHERE s.tenant_id = c.tenant_id) FOR UPDATE;",
			"-- name: A :one\nSELECT * FROM series_counters c, invoices i WHERE c.tenant_id = @tenant_id FOR UPDATE;",
			"-- name: A :one\nWITH c AS (SELECT * FROM series_counters WHERE tenant_id = @tenant_id FOR UPDATE) SELECT * FROM invoices WHERE tenant_id = @tenant_id FOR UPDATE;",
		},
		keeps: []string{
			"-- name: A :one\nSELECT * FROM customers WHERE tenant_id = @tenant_id FOR NO KEY UPDATE;",
			"-- name: A :one\nSELECT * FROM billing_periods WHERE tenant_id = @tenant_id FOR SHARE;",
			"-- name: A :one\nSELECT * FROM api_keys WHERE tenant_id = @tenant_id FOR UPDATE;",
			"-- name: A :one\nWITH c AS (SELECT * FROM series_counters c\nWHERE c.tenant_id = @tenant_id\nFOR UPDATE) SELECT * FROM invoices WHERE tenant_id = @tenant_id;",
			"-- name: A :one\nSELECT * FROM series_counters c WHERE c.tenant_id = @tenant_id AND NOT EXISTS (SELECT FROM series_entries e WHERE e.tenant_id = c.tenant_id) FOR UPDATE;",
		},
	},
}

// level is what stands before the end of a text at the same level of parentheses: of the query that the end
// belongs to, without those inside it.
func level(text string) string {
	var out []byte
	depth := 0
	for i := len(text) - 1; i >= 0 && depth >= 0; i-- {
		switch text[i] {
		case ')':
			depth++
		case '(':
			depth--
		default:
			if depth == 0 {
				out = append(out, text[i])
			}
		}
	}
	slices.Reverse(out)
	return string(out)
}

// Every query file holds the rules of money transactions; and each rule notices a query that
// breaks it, and lets pass one that only looks so.
func TestQueriesHoldTheRules(t *testing.T) {
	t.Parallel()
	conn := testdb.New(t).Owner(t)
	files, err := filepath.Glob("../../queries/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no query files: %v", err)
	}
	var queries []statement
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := statements(t, conn, string(text))
		if want := strings.Count(string(text), "-- name:"); len(found) != want {
			t.Errorf("%s: took %d of %d queries apart", file, len(found), want)
		}
		queries = append(queries, found...)
	}
	for _, r := range queryRules {
		for _, q := range queries {
			if r.broken(q) {
				t.Errorf("%s: broken by %s", r.name, q.name)
			}
		}
		for _, bad := range r.breaks {
			if !r.broken(statements(t, conn, bad)[0]) {
				t.Errorf("%s: does not notice %s", r.name, bad)
			}
		}
		for _, good := range r.keeps {
			if r.broken(statements(t, conn, good)[0]) {
				t.Errorf("%s: refuses %s", r.name, good)
			}
		}
	}
}
