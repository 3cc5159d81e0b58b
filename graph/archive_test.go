package graph_test

import (
	"cmp"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

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

// firstPeriod is the day before the first period of an archive's series: there is one on each day.
var firstPeriod = domain.NewDate(2, time.January, 1)

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

	conn := a.db.Owner(t)
	exec := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	// copies inserts a row again, once for each n of a series, with other values in some columns.
	copies := func(table, row, series string, values map[string]string) {
		t.Helper()
		var columns []string
		if err := conn.QueryRow(t.Context(), `SELECT array_agg(attname::text ORDER BY attnum) FROM pg_attribute
			WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped`, table).Scan(&columns); err != nil {
			t.Fatal(err)
		}
		copied := make([]string, len(columns))
		for i, column := range columns {
			copied[i] = cmp.Or(values[column], "of."+column)
		}
		exec(fmt.Sprintf("INSERT INTO %[1]s (%[2]s) SELECT %[3]s FROM %[1]s of, generate_series(%[4]s) n WHERE of.%[5]s",
			table, strings.Join(columns, ", "), strings.Join(copied, ", "), series, row))
	}
	id := func(id [16]byte) string { return fmt.Sprintf("id = '%x'", id) }
	big := fmt.Sprintf("'%x'::uuid", [16]byte(parse[domain.CustomerID](t, a.demo.customerID)))
	many := func(more map[string]string) map[string]string {
		values := map[string]string{
			"id": "pg_temp.id('1', 2 * n)", "operation_id": "pg_temp.id('0', n)",
			"customer_id": "CASE WHEN n % 2 = 0 THEN " + big + " ELSE pg_temp.id('c', n / 2 % 1000) END",
		}
		maps.Copy(values, more)
		return values
	}
	rare := func(more map[string]string) map[string]string {
		values := map[string]string{"id": "pg_temp.id('1', 2 * n + 1)", "operation_id": "pg_temp.id('2', n)", "customer_id": big}
		maps.Copy(values, more)
		return values
	}
	every := func(n int) string { return fmt.Sprintf("1, %d", n) }
	some := func(n int) string { return fmt.Sprintf("%d, %d, %d", n/4, n, n/2) }

	exec("SET session_replication_role = replica; SET statement_timeout = 0") // foreign keys are not what this is about
	exec(`CREATE FUNCTION pg_temp.id(kind text, n bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS
		$$ SELECT ('00000000-0000-7000-8000-' || kind || lpad(to_hex(n), 11, '0'))::uuid $$`)
	copies("invoices", id(invoice), every(n), many(map[string]string{"sequence": "n + 100", "number": "'X' || n"}))
	copies("invoices", id(void), some(n), rare(map[string]string{"sequence": "n + 1000000000", "number": "'rare' || n"}))
	copies("orders", id(order), every(n), many(map[string]string{"idempotency_key": "n::text"}))
	copies("orders", id(cancelled), some(n), rare(map[string]string{"idempotency_key": "'rare' || n"}))
	copies("settlements", id(settlement), every(n), many(map[string]string{"ordinal": "n + 100"}))
	copies("products", id(parse[domain.ProductID](t, a.demo.retiredID)), every(n/10), many(map[string]string{"sku": "'x' || n"}))
	copies("products", id(parse[domain.ProductID](t, a.demo.productID)), some(n/10), rare(map[string]string{"sku": "'rare' || n"}))
	copies("ops.payment_events", "event_id = 'first'", every(n), map[string]string{"event_id": "'e' || n", "received_at": "of.received_at - n * interval '1 s'"})
	of := fmt.Sprintf("FROM generate_series(%s) n, series_counters WHERE series_id = '%x'", every(n), [16]byte(parse[domain.SeriesID](t, a.demo.seriesID)))
	exec(fmt.Sprintf("INSERT INTO series_periods SELECT tenant_id, series_id, date '%s' + n::integer, 1, 1, now() %s", firstPeriod, of))
	exec(`INSERT INTO series_changes SELECT tenant_id, series_id, n, pg_temp.id('4', n), 'IMPORT', '0001-01-01', n, n, 1, 0, 0, n, n + 1, 'x', pg_temp.id('3', n), '', 'command', now() ` + of)
	exec("RESET session_replication_role; ANALYZE")
	key := testdb.Scan[domain.APIKeyID](t, a.db, `SELECT api_key_id FROM settlements WHERE id = $1`, settlement)
	return &archive{api: a, n: n, key: key.String()}
}
