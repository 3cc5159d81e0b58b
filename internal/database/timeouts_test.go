package database_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"countersign/internal/auth"
	"countersign/internal/database"
	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/testdb"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// timeouts are what a session of the login has, without any start-up parameter.
func timeouts(t *testing.T, l login) (values [3]string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), l.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	err = conn.QueryRow(t.Context(), `SELECT current_setting('lock_timeout'), current_setting('statement_timeout'),
		current_setting('idle_in_transaction_session_timeout')`).Scan(&values[0], &values[1], &values[2])
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// The time-outs come with the login, in this database alone: they hold behind a pooler that drops
// start-up parameters, and for whatever connects as the server.
func TestMigrateGivesTheLoginItsTimeouts(t *testing.T) {
	t.Parallel()
	d := testdb.New(t)
	l := newLogin(t, d, "IN ROLE "+database.RuntimeRole)
	// Other settings of the login in this database are no time-outs.
	for _, setting := range []string{"work_mem = '5MB'", "search_path = 'public'", "jit = off"} {
		d.Exec(t, "ALTER ROLE "+l.name+" IN DATABASE "+d.Name+" SET "+setting)
	}
	if got := timeouts(t, l); got != [3]string{"0", "0", "0"} {
		t.Fatalf("a new login has the time-outs %v", got)
	}
	// The schema is current: only the time-outs are missing.
	if _, err := database.Migrate(t.Context(), d.URL, l.name, quiet); err != nil {
		t.Fatal(err)
	}
	if got, want := timeouts(t, l), [3]string{"4s", "8s", "8s"}; got != want {
		t.Errorf("after migrate the login has the time-outs %v, want %v", got, want)
	}
	elsewhere := testdb.Scan[int](t, d, `SELECT count(*) FROM pg_db_role_setting s JOIN pg_roles r ON r.oid = s.setrole
		WHERE r.rolname = $1 AND s.setdatabase <> (SELECT oid FROM pg_database WHERE datname = current_database())`, l.name)
	if elsewhere != 0 {
		t.Errorf("migrate changed the login in %d other places", elsewhere)
	}
}

// An operator's own time-outs stay, wherever they were set: migrate neither overwrites them nor
// needs the right to alter the login.
func TestMigrateLeavesTimeoutsThatAreThere(t *testing.T) {
	t.Parallel()
	d := testdb.Empty(t)
	l := newLogin(t, d, "")
	d.Exec(t, "ALTER ROLE "+l.name+" SET lock_timeout = '1s'")
	d.Exec(t, "ALTER ROLE "+l.name+" IN DATABASE "+d.Name+" SET statement_timeout = '2s'")
	d.Exec(t, "ALTER DATABASE "+d.Name+" SET idle_in_transaction_session_timeout = '3s'")
	if applied, err := database.Migrate(t.Context(), d.URL, l.name, quiet); err != nil || applied == 0 {
		t.Errorf("migrated %d: %v", applied, err)
	}
	if got, want := timeouts(t, l), [3]string{"1s", "2s", "3s"}; got != want {
		t.Errorf("after migrate the login has the time-outs %v, want %v", got, want)
	}
	if _, err := database.Migrate(t.Context(), with(d.URL, "default_transaction_read_only", "on"), l.name, quiet); err != nil {
		t.Errorf("the next start finds something to do: %v", err)
	}
}

// A login that does not exist is named, and nothing is set.
func TestMigrateForAnUnknownLogin(t *testing.T) {
	t.Parallel()
	_, err := database.Migrate(t.Context(), testdb.New(t).URL, "nobody_here", quiet)
	if err == nil || err.Error() != "the database has no login nobody_here" {
		t.Errorf("got %v", err)
	}
}

// A serverless instance that is frozen while it holds a series' counter does not stop the series:
// the server ends its session, and the next number is given. Without the time-out the series
// stands still: the same allocation is refused.
func TestFrozenTransactionFreesTheCounter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, idle, lock string
		free             bool
	}{
		{name: "with the time-out", idle: "200ms", lock: "15s", free: true},
		{name: "without", idle: "0", lock: "400ms", free: false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			d := testdb.New(t)
			instance := newLogin(t, d, "IN ROLE "+database.RuntimeRole)
			d.Exec(t, "ALTER ROLE "+instance.name+" IN DATABASE "+d.Name+" SET idle_in_transaction_session_timeout = '"+c.idle+"'")
			service := invoicing.New(txn.New(d.PoolAt(t, with(d.URL, "lock_timeout", c.lock), 2), txn.Settings{}))
			tenant, _, err := service.CreateTenant(ctx, "rook", "Rook & Pawn")
			if err != nil {
				t.Fatal(err)
			}
			caller := auth.Caller{TenantID: tenant.ID, Role: domain.RoleAdmin}
			invoice := issue(t, service, caller)

			conn, err := pgx.Connect(ctx, instance.url)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close(ctx) }()
			frozen, err := conn.Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := sqlc.New(frozen).LockSeriesCounter(ctx, sqlc.LockSeriesCounterParams{TenantID: tenant.ID, SeriesID: *invoice.SeriesID}); err != nil {
				t.Fatal(err)
			}

			next, err := service.Allocate(ctx, caller, invoicing.AllocateInvoiceInput{
				SeriesID: *invoice.SeriesID, CustomerID: invoice.CustomerID, Currency: "EUR",
				Lines: []domain.InvoiceLineInput{{Description: "Another month", Quantity: 1, UnitAmountMinor: 900}},
			})
			_, thaw := frozen.Exec(ctx, "SELECT 1")
			var refusal *domain.Refusal
			switch {
			case !c.free && (!errors.As(err, &refusal) || refusal.Code != domain.CodeBusy || thaw != nil):
				t.Errorf("the allocation: %v, want BUSY; the frozen transaction: %v, want it alive", err, thaw)
			case c.free && err != nil:
				t.Errorf("the counter is not free again: %v", err)
			case c.free && *next.Value.Number != "A-00002":
				t.Errorf("the next number is %s", *next.Value.Number)
			case c.free && !conn.IsClosed():
				t.Errorf("the frozen transaction goes on with %v, want its session ended", thaw)
			}
		})
	}
}
