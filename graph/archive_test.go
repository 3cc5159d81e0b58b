package graph_test

import (
	"fmt"
	"testing"

	"countersign/internal/domain"
	"countersign/internal/ordering"
	"countersign/internal/payment"
	"countersign/internal/testdb"
)

// archive is a tenant with n rows in each of its long lists (a tenth of products): half of the rows are one customer's, the
// others a thousand customers'; a few have a rare status.
type archive struct {
	*api
	n   int
	key string // of which the settlements are
}

// newArchive copies rows that the server itself has made.
func newArchive(t testing.TB, a *api, n int) *archive {
	t.Helper()
	settlement, invoice, void := parse[domain.SettlementID](t, a.demo.settlementID), parse[domain.InvoiceID](t, a.demo.invoiceID), parse[domain.InvoiceID](t, a.demo.neighbourInvoiceID)
	order, cancelled := parse[domain.OrderID](t, a.demo.orderID), parse[domain.OrderID](t, a.demo.neighbourOrderID)
	a.must(t, a.demo.admin, `mutation { voidInvoice(input: {invoiceId: "`+a.demo.neighbourInvoiceID+`", reason: "a mistake"}) { userErrors { code } } }`, nil)
	if _, err := a.ordering.Cancel(t.Context(), a.demo.adminCaller(), ordering.CancelOrderInput{OrderID: cancelled}); err != nil {
		t.Fatal(err)
	}
	a.receive(t, payment.Event{ID: "first", Reference: a.demo.orderID, Fact: domain.Fact{Kind: domain.FactFailed, PaymentID: "other"}})

	copies := func(table string, of [16]byte, series, patch string) string {
		return fmt.Sprintf(`INSERT INTO %[1]s SELECT copy.* FROM %[1]s of, generate_series(%[3]s) n, jsonb_populate_record(of, jsonb_build_object(%[2]s)) copy WHERE of.id = '%[4]x'`,
			table, patch, series, of)
	}
	customer := [16]byte(parse[domain.CustomerID](t, a.demo.customerID))
	all, some := fmt.Sprintf("1, %d", n), fmt.Sprintf("%d, %d, %d", n/4, n, n/2)
	const twin, odd = `'id', pg_temp.id('1', 2 * n), 'operation_id', pg_temp.id('0', n)`, `'id', pg_temp.id('1', 2 * n + 1), 'operation_id', pg_temp.id('2', n)`
	owner := fmt.Sprintf(`, 'customer_id', CASE WHEN n %% 2 = 0 THEN '%x'::uuid ELSE pg_temp.id('c', n / 2 %% 1000) END`, customer)
	one := fmt.Sprintf(`, 'customer_id', '%x'`, customer)
	conn := a.db.Owner(t)
	for _, sql := range []string{
		"SET session_replication_role = replica", "SET statement_timeout = 0", // foreign keys are not what this is about
		`CREATE FUNCTION pg_temp.id(kind text, n bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS
			$$ SELECT ('00000000-0000-7000-8000-' || kind || lpad(to_hex(n), 11, '0'))::uuid $$`,
		copies("invoices", invoice, all, twin+owner+`, 'sequence', n + 100, 'number', 'X' || n`),
		copies("invoices", void, some, odd+one+`, 'series_id', NULL, 'period_start', NULL, 'sequence', NULL, 'number', NULL, 'issue_date', NULL`),
		copies("orders", order, all, twin+owner+`, 'idempotency_key', n`),
		copies("orders", cancelled, some, odd+one+`, 'idempotency_key', 'rare' || n`),
		copies("settlements", settlement, all, twin+owner+`, 'ordinal', n + 100`),
		copies("products", parse[domain.ProductID](t, a.demo.retiredID), fmt.Sprintf("1, %d", n/10), twin+`, 'sku', 'x' || n`),
		copies("products", parse[domain.ProductID](t, a.demo.productID), fmt.Sprintf("%d, %d, %d", n/40, n/10, n/20), odd+`, 'sku', 'rare' || n`),
		fmt.Sprintf(`INSERT INTO ops.payment_events SELECT copy.* FROM ops.payment_events of, generate_series(%s) n,
			jsonb_populate_record(of, jsonb_build_object('event_id', 'e' || n, 'received_at', of.received_at - n * interval '1 s')) copy WHERE of.event_id = 'first'`, all),
		"RESET session_replication_role", "ANALYZE",
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	key := testdb.Scan[domain.APIKeyID](t, a.db, `SELECT api_key_id FROM settlements WHERE id = $1`, settlement)
	return &archive{api: a, n: n, key: key.String()}
}
