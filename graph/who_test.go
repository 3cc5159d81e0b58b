package graph_test

import (
	"fmt"
	"strings"
	"testing"

	"countersign/graph"
	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/testdb"
)

// TestEveryMutationSaysWho: after a caller with a JWT has run every mutation, each row that they made
// says by its subject who it was, in whichever table; the catalogue says which columns those are. What
// the server does on its own account it says, too.
func TestEveryMutationSaysWho(t *testing.T) {
	t.Parallel()
	var a *api
	a = newAPI(t, func(_ *testdb.DB, o *graph.Options) {
		o.Authenticate = testCallers(func(string) auth.Caller {
			return auth.Caller{TenantID: a.demo.id, Subject: "anna", Role: domain.RoleAdmin}
		})
	})
	count := func(by string) map[string]int {
		columns := testdb.Scan[[]string](t, a.db, `SELECT array_agg(format('%s %s', c.relname, a.attname) ORDER BY 1) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
			WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attname ~ '_by$' AND a.atttypid = 'text'::regtype AND a.attname <> 'waived_by'`)
		rows := map[string]int{}
		for _, column := range columns {
			table, name, _ := strings.Cut(column, " ")
			rows[column] = a.count(t, table, name+` ~ $1`, by)
		}
		return rows
	}
	for _, field := range fields(schema.Mutation) {
		before := count("^jwt:anna$")
		r := a.do(t, "a JWT", `mutation { f: `+field.Name+rootArguments[field.Name](t, a, "ADMIN")+` { userErrors { code } } }`, nil)
		if len(r.errors) > 0 || strings.Contains(r.body, "code") {
			t.Errorf("%s is answered %s", field.Name, r.body)
		}
		if fmt.Sprint(count("^jwt:anna$")) == fmt.Sprint(before) {
			t.Errorf("%s leaves no row that says who: a column with who asked is called …_by, and holds domain.Operation.By", field.Name)
		}
	}
	for column, n := range count(`^(jwt:anna|command|system|provider|tok_[0-9a-z]{26}|reconciler|metering|simulated)$`) {
		table, name, _ := strings.Cut(column, " ")
		if all := a.count(t, table, name+" IS NOT NULL"); all != n {
			t.Errorf("%s: %d of %d rows say who in words that nobody knows", column, all-n, all)
		}
	}
}
