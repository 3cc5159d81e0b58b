package database_test

import (
	"io/fs"
	"testing"

	"countersign/internal/testdb"
	"countersign/migrations"
)

// Rows of before there were drafts, parts and parties stay legal: each tenant sells under its name,
// each customer buys as it stands, what has a number is frozen so, and what was paid is one payment.
func TestOldInvoicesLearnTheirLife(t *testing.T) {
	t.Parallel()
	d := testdb.Empty(t)
	conn := d.Owner(t)
	names, err := fs.Glob(migrations.Files, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if name == "00007_invoice_life.sql" {
			if _, err := conn.PgConn().Exec(t.Context(), oldInvoices).ReadAll(); err != nil {
				t.Fatal(err)
			}
		}
		text, err := fs.ReadFile(migrations.Files, name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.PgConn().Exec(t.Context(), string(text)).ReadAll(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	for _, c := range []struct{ sql, want string }{
		{"SELECT name || revision FROM sellers", "Old Ltd1"},
		{"SELECT name || revision FROM seller_revisions", "Old Ltd1"},
		{"SELECT name || email || revision FROM customer_revisions", "Rookrook@old.example1"},
		{"SELECT string_agg(status || ' ' || coalesce(seller_revision::text, '-') || coalesce(buyer_revision::text, '-') || ' ' || paid_minor, ', ' ORDER BY id) FROM invoices",
			"PENDING 11 0, PAID 11 200, OPEN -- 0"},
		{"SELECT string_agg(amount_minor || reference || recorded_by, ', ') FROM invoice_payments", "200transfertok_x"},
	} {
		if got := testdb.Scan[string](t, d, c.sql); got != c.want {
			t.Errorf("%s: %s, want %s", c.sql, got, c.want)
		}
	}
}

// oldInvoices are a tenant's, as they were: one final, one paid, one that accrues.
const oldInvoices = `
INSERT INTO ops.tenants VALUES ('00000000-0000-0000-0000-000000000001', 'old', 'Old Ltd', '2026-01-01');
INSERT INTO customers (tenant_id, id, name, email, currency, time_zone, operation_id, operation_fingerprint, created_by, created_at, updated_at)
VALUES ('00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000002', 'Rook', 'rook@old.example', 'EUR', 'UTC', gen_random_uuid(), '', 'tok_x', '2026-01-01', '2026-01-01');
INSERT INTO invoice_series (tenant_id, id, code, document, format, number_pattern, time_zone, fiscal_year_start, operation_id, operation_fingerprint, created_by, created_at)
VALUES ('00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000003', 'INV', 'INVOICE', '{N}', '9', 'UTC', 1, gen_random_uuid(), '', 'system', '2026-01-01');
INSERT INTO billing_periods (tenant_id, customer_id, month, time_zone, starts_at, ends_at)
VALUES ('00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000002', '2026-01-01', 'UTC', '2026-01-01', '2026-02-01');
INSERT INTO invoices (tenant_id, id, customer_id, kind, status, series_id, period_start, sequence, number, issue_date, currency, total_minor, rounding_adjustment,
    operation_id, operation_fingerprint, created_by, created_at, updated_at, usage_month, paid_at, payment_reference)
VALUES
    ('00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-00000000000a', '00000000-0000-0000-0000-000000000002', 'DIRECT', 'PENDING', '00000000-0000-0000-0000-000000000003', '0001-01-01', 1, '1',
     '2026-01-01', 'EUR', 100, 0, gen_random_uuid(), '', 'tok_x', '2026-01-01', '2026-01-01', NULL, NULL, NULL),
    ('00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-00000000000b', '00000000-0000-0000-0000-000000000002', 'DIRECT', 'PAID', '00000000-0000-0000-0000-000000000003', '0001-01-01', 2, '2',
     '2026-01-01', 'EUR', 200, 0, gen_random_uuid(), '', 'tok_x', '2026-01-01', '2026-01-02', NULL, '2026-01-02', 'transfer'),
    ('00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-00000000000c', '00000000-0000-0000-0000-000000000002', 'USAGE', 'OPEN', NULL, NULL, NULL, NULL,
     NULL, 'EUR', 300, 0, gen_random_uuid(), '', 'metering', '2026-01-01', '2026-01-01', '2026-01-01', NULL, NULL);
INSERT INTO invoice_lines (tenant_id, invoice_id, position, description, quantity, unit_price, exact_amount)
SELECT tenant_id, id, 1, 'x', 1, total_minor, total_minor FROM invoices;
INSERT INTO invoice_history (tenant_id, id, invoice_id, position, event, from_status, to_status, operation_id, operation_fingerprint, moved_by, moved_at)
VALUES ('00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-00000000000d', '00000000-0000-0000-0000-00000000000b', 1, 'PAID', 'PENDING', 'PAID', gen_random_uuid(), '', 'tok_x', '2026-01-02');
`
