package database_test

import (
	"testing"

	"countersign/internal/testdb"
	"countersign/migrations"
)

// Orders of before a payment that is due asked for a person do so from then on, under a new version;
// a reason that was there already stays, and so does an order that is in order.
func TestOrdersFromBeforeAskForAPerson(t *testing.T) {
	t.Parallel()
	d := testdb.New(t)
	d.Exec(t, `
		INSERT INTO ops.tenants (id, handle, name, created_at) SELECT id, 'old', 'Old Ltd', now() FROM (SELECT gen_random_uuid() AS id) AS made;
		INSERT INTO customers (tenant_id, id, name, email, time_zone, currency, operation_id, operation_fingerprint, created_by, created_at, updated_at, revision)
		SELECT t.id, gen_random_uuid(), 'Rook', NULL, 'UTC', 'EUR', gen_random_uuid(), '', 'x', now(), now(), 1 FROM ops.tenants t;
		INSERT INTO orders (tenant_id, id, customer_id, idempotency_key, status, currency, total_minor, refunded_minor, attention, operation_id,
		                    operation_fingerprint, created_by, created_at, paid_at, updated_at)
		SELECT c.tenant_id, gen_random_uuid(), c.id, key, 'PAID', 'EUR', 100, 0, reason, gen_random_uuid(), '', 'x', now(), now(), '2099-01-01'
		FROM customers c, (VALUES ('due', NULL), ('graver', 'another reason'), ('fine', NULL)) AS made (key, reason);
		INSERT INTO captures (tenant_id, provider, provider_payment_id, order_id, amount_minor, currency, state, captured_at, updated_at)
		SELECT tenant_id, 'simulated', idempotency_key, id, 100, 'EUR', CASE idempotency_key WHEN 'fine' THEN 'APPLIED' ELSE 'REFUND_DUE' END, now(), now() FROM orders;
		DROP INDEX orders_attention`)
	text, err := migrations.Files.ReadFile("00012_attention.sql")
	if err != nil {
		t.Fatal(err)
	}
	d.Exec(t, string(text))
	got := testdb.Scan[string](t, d, `SELECT string_agg(concat_ws(' ', idempotency_key, attention, CASE WHEN updated_at > '2099-01-01' THEN 'anew' END), ', ' ORDER BY idempotency_key) FROM orders`)
	if want := "due a payment is to be given back anew, fine, graver another reason"; got != want {
		t.Errorf("the orders are %q, want %q", got, want)
	}
}
