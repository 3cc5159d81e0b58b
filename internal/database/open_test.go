package database_test

import (
	"net/url"
	"strings"
	"testing"

	"countersign/internal/database"
	"countersign/internal/testdb"
)

// Each configuration that would break a promise is refused before the server serves, by one line
// that names the cause, and that can be pasted anywhere: it never holds the password.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	asOwner := func(t *testing.T, d *testdb.DB) string {
		u, err := url.Parse(d.URL)
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword(u.User.Username(), secret) // the test server trusts, whatever the password
		return u.String()
	}
	migrated, empty := testdb.New, testdb.Empty
	for _, c := range []struct {
		name  string
		db    func(t testing.TB) *testdb.DB
		url   func(t *testing.T, d *testdb.DB) string
		cause string
	}{
		{"commits that are not durable", migrated, func(t *testing.T, d *testdb.DB) string {
			d.Exec(t, "ALTER DATABASE "+d.Name+" SET synchronous_commit = off")
			return asOwner(t, d)
		}, "synchronous_commit"},
		{"the simple protocol", migrated, func(t *testing.T, d *testdb.DB) string {
			return with(asOwner(t, d), "default_query_exec_mode", "simple_protocol")
		}, "simple protocol"},
		{"no schema", empty, asOwner, "countersign migrate"},
		{"no time-outs", migrated, func(t *testing.T, d *testdb.DB) string {
			return newLogin(t, d, "IN ROLE "+database.RuntimeRole).url
		}, "has no time-outs"},
		{"one time-out missing", migrated, func(t *testing.T, d *testdb.DB) string {
			return with(asOwner(t, d), "statement_timeout", "0")
		}, "has no time-outs"},
		{"no member of the runtime role", migrated, func(t *testing.T, d *testdb.DB) string {
			return newLogin(t, d, "").url
		}, "GRANT countersign_runtime TO"},
		{"no such database", migrated, func(t *testing.T, d *testdb.DB) string {
			return strings.Replace(asOwner(t, d), d.Name, "nowhere", 1)
		}, `database "nowhere" does not exist`},
		{"no such login", migrated, func(_ *testing.T, d *testdb.DB) string {
			return strings.Replace(d.URL, "postgres@", "nobody_here:"+secret+"@", 1)
		}, `role "nobody_here" does not exist`},
		// Two addresses, and two attempts at each: the library's own text has a line for each.
		{"nobody listens", migrated, func(*testing.T, *testdb.DB) string {
			return "postgres://rook:" + secret + "@127.0.0.1:1,127.0.0.1:2/countersign"
		}, "cannot connect to the database at 127.0.0.1:1/countersign"},
		{"no URL", migrated, func(*testing.T, *testdb.DB) string {
			return "postgres://rook:" + secret + "@127.0.0.1:port/countersign"
		}, "DATABASE_URL is no PostgreSQL URL"},
		{"an unknown parameter of the library", migrated, func(t *testing.T, d *testdb.DB) string {
			return with(asOwner(t, d), "pool_max_conns", "many")
		}, "DATABASE_URL is no PostgreSQL URL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			target := c.url(t, c.db(t))
			if !strings.Contains(target, secret) {
				t.Fatal("the URL has no password to tell")
			}
			pool, err := database.Open(t.Context(), target, database.Options{})
			switch {
			case err == nil:
				pool.Close()
				t.Fatal("it opened")
			case !strings.Contains(err.Error(), c.cause):
				t.Errorf("%q does not name the cause: %s", err, c.cause)
			case strings.Contains(err.Error(), secret):
				t.Errorf("%q tells the password", err)
			case strings.ContainsAny(err.Error(), "\n\r\t"):
				t.Errorf("%q is more than one line", err)
			}
		})
	}
}

// What migrate says of a database it cannot reach is one line too, without the password.
func TestMigrateRefuses(t *testing.T) {
	t.Parallel()
	for name, target := range map[string]string{
		"nobody listens": "postgres://rook:" + secret + "@127.0.0.1:1,127.0.0.1:2/countersign",
		"no URL":         "postgres://rook:" + secret + "@127.0.0.1:port/countersign",
	} {
		_, err := database.Migrate(t.Context(), target, "rook", quiet)
		if err == nil || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %q, want one line without the password", name, err)
		}
	}
}
