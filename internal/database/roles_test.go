package database_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"countersign/internal/auth"
	"countersign/internal/database"
	"countersign/internal/doctor"
	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/testdb"
	"countersign/internal/txn"
)

// mayChange are the columns that the server changes; everything else in the database only grows.
var mayChange = []string{
	"public.series_counters.*",
	"public.access_tokens.revoked_at",
	"public.access_tokens.expires_at",
	"public.access_tokens.updated_at",

	// What a party is now; what it was stays in its revisions.
	"public.customers.name", "public.customers.email", "public.customers.address", "public.customers.tax_ids", "public.customers.revision", "public.customers.updated_at",
	"public.sellers.name", "public.sellers.email", "public.sellers.address", "public.sellers.tax_ids", "public.sellers.revision", "public.sellers.updated_at",

	"public.products.name", "public.products.unit_price_minor", "public.products.active", "public.products.updated_at",
	"public.product_stock.available",
	"public.orders.status", "public.orders.refunded_minor", "public.orders.attention", "public.orders.updated_at",
	"public.orders.paid_at", "public.orders.fulfilled_at", "public.orders.cancelled_at", "public.orders.refunded_at",
	"public.payment_attempts.status", "public.payment_attempts.provider_payment_id", "public.payment_attempts.failure",
	"public.payment_attempts.ended_at", "public.payment_attempts.updated_at",
	"public.captures.state", "public.captures.updated_at",
	"public.refunds.status", "public.refunds.provider_refund_id", "public.refunds.failure", "public.refunds.ended_at", "public.refunds.updated_at",

	"public.billing_exemptions.ended_by", "public.billing_exemptions.ended_at", "public.billing_exemptions.end_operation_id", "public.billing_exemptions.end_fingerprint",
	"public.billing_periods.closed_at",
	"public.api_keys.status", "public.api_keys.revoked_at", "public.api_keys.updated_at",
	"public.api_key_revocations.settled_at",
	"public.settlements.outcome", "public.settlements.round", "public.settlements.invoice_id", "public.settlements.exemption_id",
	"public.settlements.settled_at", "public.settlements.updated_at",
	"public.usage_events.settlement_id",
	// An invoice accrues, is made final, and is paid, waived or voided; whose it is, and its lines, stay.
	"public.invoices.status", "public.invoices.total_minor", "public.invoices.rounding_adjustment", "public.invoices.updated_at",
	"public.invoices.series_id", "public.invoices.period_start", "public.invoices.sequence", "public.invoices.number", "public.invoices.issue_date",
	"public.invoices.waived_by", "public.invoices.waive_reason", "public.invoices.exemption_id", "public.invoices.waive_verified_at",
	"public.invoices.paid_at", "public.invoices.payment_reference", "public.invoices.voided_at", "public.invoices.void_reason",
	"public.invoices.seller_revision", "public.invoices.buyer_revision", "public.invoices.tax_minor", "public.invoices.lines_from",
	"public.invoices.paid_minor", "public.invoices.credited_minor", "public.invoices.refund_due_minor", "public.invoices.replaced_by",

	"ops.payment_events.tenant_id", "ops.payment_events.processed_at", "ops.payment_events.result",
	"ops.payment_events.conflicts", "ops.payment_events.conflict",
	"ops.simulated_payments.status", "ops.simulated_payments.calls",
	"ops.simulated_refunds.amount_minor", // ON CONFLICT updates it to itself, to return the row

	"ops.river_job.*", "ops.river_leader.*", "ops.river_notification.*", "ops.river_queue.*",
}

// mayDelete are the tables that the server deletes from: jobs that are done are nobody's history.
var mayDelete = []string{"ops.river_job", "ops.river_leader", "ops.river_notification", "ops.river_queue"}

// No bug of the server can rewrite history: whatever statement it sends, what only grows is
// neither updated nor deleted, and the schema stays as it is. Every column of every table is
// tried, so a new table that grants more than it should fails here.
func TestRuntimeRoleOnlyAdds(t *testing.T) {
	t.Parallel()
	d := testdb.New(t)
	columns := testdb.Scan[[]string](t, d, `SELECT array_agg(format('%s.%s.%s', n.nspname, c.relname, a.attname) ORDER BY 1)
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
		WHERE n.nspname IN ('public', 'ops') AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped`)
	tables := map[string]bool{}
	for _, column := range columns {
		table, name := column[:strings.LastIndex(column, ".")], column[strings.LastIndex(column, ".")+1:]
		tables[table] = true
		allowed := slices.Contains(mayChange, column) || slices.Contains(mayChange, table+".*")
		err := try(t, d.Pool, fmt.Sprintf("UPDATE %s SET %s = %s", table, name, name))
		if allowed && err != nil {
			t.Errorf("the server cannot update %s: %v", column, err)
		}
		if !allowed && !refused(err) {
			t.Errorf("the server may update %s: %v", column, err)
		}
	}
	for _, column := range mayChange {
		if table := strings.TrimSuffix(column, ".*"); !tables[table] && !slices.Contains(columns, column) {
			t.Errorf("%s is listed and does not exist", column)
		}
	}
	for _, history := range []string{
		"public.invoices", "public.invoice_lines", "public.customers", "public.invoice_series", "public.series_periods", "public.series_changes", "public.series_entries", "ops.tenants",
		"public.orders", "public.order_lines", "public.order_history", "public.product_changes", "public.refunds", "ops.river_migration",
		"public.billing_exemptions", "public.usage_events", "public.usage_batches", "public.settlements", "public.settlement_attempts", "public.invoice_history",
		"public.seller_revisions", "public.customer_revisions", "public.invoice_payments",
	} {
		if !tables[history] {
			t.Errorf("%s was not tried", history)
		}
	}
	for table := range tables {
		for _, sql := range []string{"DELETE FROM ", "TRUNCATE ", "DROP TABLE ", "ALTER TABLE ", "CREATE INDEX ON "} {
			sql += table
			switch {
			case strings.HasPrefix(sql, "ALTER"):
				sql += " ADD note text"
			case strings.HasPrefix(sql, "CREATE"):
				sql += " ((1))"
			}
			err := try(t, d.Pool, sql)
			if strings.HasPrefix(sql, "DELETE") && slices.Contains(mayDelete, table) {
				if err != nil {
					t.Errorf("%s: %v", sql, err)
				}
				continue
			}
			if !refused(err) {
				t.Errorf("%s: %v, want a refusal", sql, err)
			}
		}
	}
	for _, sql := range []string{
		"CREATE TABLE public.notes (id int)", "CREATE TABLE ops.notes (id int)", "CREATE SCHEMA notes",
		"CREATE FUNCTION public.note() RETURNS int LANGUAGE sql AS 'SELECT 1'", "CREATE ROLE notes",
		"INSERT INTO ops.goose_db_version (version_id, is_applied) VALUES (9, true)",
		"INSERT INTO ops.river_migration (line, version) VALUES ('main', 99)",
	} {
		if err := try(t, d.Pool, sql); !refused(err) {
			t.Errorf("%s: %v, want a refusal", sql, err)
		}
	}
	if owned := testdb.Scan[int](t, d, "SELECT count(*) FROM pg_class WHERE relowner = $1::regrole", database.RuntimeRole); owned != 0 {
		t.Errorf("the runtime role owns %d relations", owned)
	}
}

// try runs a statement and undoes it.
func try(t *testing.T, pool *pgxpool.Pool, sql string) (err error) {
	t.Helper()
	if begin := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		_, err = tx.Exec(context.Background(), sql)
		return errUndo
	}); begin != errUndo {
		t.Fatal(begin)
	}
	return err
}

func refused(err error) bool {
	return code(err) == pgerrcode.InsufficientPrivilege
}

// Development logs in as the owner, and yet the server works in the runtime role: what breaks in
// production breaks there too. Cleaning a connection, as poolers do, does not end that.
func TestOwnersPoolWorksInTheRuntimeRole(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	conn, err := testdb.New(t).Pool.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	for _, sql := range []string{"SELECT 1", "RESET ROLE", "RESET ALL", "DISCARD ALL"} {
		if _, err := conn.Conn().Exec(ctx, sql, pgx.QueryExecModeExec); err != nil {
			t.Fatal(err)
		}
		var user, login string
		if err := conn.QueryRow(ctx, "SELECT current_user, session_user", pgx.QueryExecModeExec).Scan(&user, &login); err != nil {
			t.Fatal(err)
		}
		if user != database.RuntimeRole || login == user {
			t.Errorf("after %s the login %s works as %s", sql, login, user)
		}
	}
}

// Production's login is a plain member of the runtime role: it owns nothing and can do all that
// the server does.
func TestMemberWorksWithoutOwningAnything(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	d := testdb.New(t)
	member := newLogin(t, d, "IN ROLE "+database.RuntimeRole)
	if _, err := database.Migrate(ctx, d.URL, member.name, quiet); err != nil {
		t.Fatal(err)
	}
	pool := d.PoolAt(t, member.url, 4)
	db := txn.New(pool, txn.Settings{})
	service, tokens := invoicing.New(db), auth.NewTokens(db)
	tenant, _, err := service.CreateTenant(ctx, "rook", "Rook & Pawn")
	if err != nil {
		t.Fatal(err)
	}
	if number := *issue(t, service, auth.Caller{TenantID: tenant.ID, Role: domain.RoleAdmin}).Number; number != "A-00001" {
		t.Errorf("the first invoice is %s", number)
	}
	_, token, err := tokens.Create(ctx, auth.NewToken{TenantID: tenant.ID, Role: domain.RoleAdmin})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.Revoke(ctx, tenant.ID, token.ID); err != nil {
		t.Error(err)
	}
	if report, err := doctor.Check(ctx, db, domain.TenantID{}); err != nil || !report.Healthy() {
		t.Errorf("the doctor says %+v, %v", report, err)
	}
	if err := try(t, pool, "DELETE FROM invoices"); !refused(err) {
		t.Errorf("a member may delete invoices: %v", err)
	}
	owned := testdb.Scan[int](t, d, "SELECT count(*) FROM pg_shdepend WHERE refobjid = $1::regrole AND deptype = 'o'", member.name)
	if owned != 0 {
		t.Errorf("the login owns %d objects", owned)
	}
	// Every start of a replica looks whether to migrate; this login may not, and need not.
	if applied, err := migrate(ctx, member.url); err != nil || applied != 0 {
		t.Errorf("a member's start migrated %d: %v", applied, err)
	}
}

// A login that was not made a member, or one that has no use of it, is told how to become one, by
// whichever step of the start it meets first.
func TestStrangerIsRefused(t *testing.T) {
	t.Parallel()
	for name, attributes := range map[string]string{"no member": "", "does not inherit": "NOINHERIT IN ROLE " + database.RuntimeRole} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := testdb.New(t)
			stranger := newLogin(t, d, attributes)
			want := fmt.Sprintf("the login %s may not act as countersign_runtime: GRANT countersign_runtime TO %s, and let it inherit", stranger.name, stranger.name)
			if _, err := database.Open(t.Context(), stranger.url, database.Options{}); err == nil || err.Error() != want {
				t.Errorf("opening: %v, want %s", err, want)
			}
			if _, err := migrate(t.Context(), stranger.url); err == nil || err.Error() != want {
				t.Errorf("migrating: %v, want %s", err, want)
			}
		})
	}
}

// An owner that could not become the runtime role is refused when the server starts, and not by
// its first request. It proves mayBecome.
func TestOwnerThatIsNoMemberIsRefused(t *testing.T) {
	t.Parallel()
	d := testdb.New(t)
	owner := newLogin(t, d, "")
	for _, table := range []string{"invoices", "invoice_lines"} {
		d.Exec(t, "ALTER TABLE "+table+" OWNER TO "+owner.name)
	}
	if pool, err := database.Open(t.Context(), owner.url, database.Options{}); err == nil {
		t.Errorf("the pool opened; its first connection: %v", pool.Ping(t.Context()))
	} else if !strings.Contains(err.Error(), "GRANT "+database.RuntimeRole+" TO "+owner.name) {
		t.Errorf("%v does not say what to grant", err)
	}
}
