package database_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"countersign/internal/testdb"
)

// neverViolated are the foreign keys and unique indexes that no request can break, each for a
// reason. One of them that is broken all the same is a defect of the server, and surfaces as one.
var neverViolated = map[string]string{
	"customers_tenant_fkey":     "the tenant is the caller's own",
	"access_tokens_tenant_fkey": "the tenant is the caller's own, or was found by its handle",

	"access_tokens_predecessor_fkey":  "the predecessor is held in the same transaction, and none is deleted",
	"access_token_history_token_fkey": "the token is held in the same transaction, and none is deleted",

	"invoice_series_tenant_fkey":  "the tenant is the caller's own, or made in the same transaction",
	"series_counters_series_fkey": "the series is made in the same statement",
	"series_places_series_fkey":   "the series is made in the same statement",
	"series_periods_series_fkey":  "the series' counter is locked in the same transaction",
	"series_changes_series_fkey":  "the series was read before, and none is deleted",
	"series_entries_series_fkey":  "the series was read before, and none is deleted",
	"invoices_series_fkey":        "the number comes from the series' locked counter",
	"invoice_lines_invoice_fkey":  "the invoice is made in the same statement",

	"sellers_tenant_fkey":              "the tenant is made in the same transaction",
	"seller_revisions_tenant_fkey":     "the tenant is the caller's own, or made in the same transaction",
	"customer_revisions_customer_fkey": "the customer is made in the same statement, or changed in the same transaction",
	"invoices_credits_fkey":            "the invoice is held in the same transaction",
	"invoices_replaced_by_fkey":        "the invoice is held in the same transaction",
	"invoice_payments_invoice_fkey":    "the invoice is held in the same transaction",

	"products_tenant_fkey":         "the tenant is the caller's own",
	"product_stock_product_fkey":   "the product is made in the same statement",
	"product_changes_product_fkey": "the product is changed in the same transaction, and none is deleted",
	"order_lines_order_fkey":       "the order is made in the same statement",
	"order_lines_product_fkey":     "the product was read in the same transaction, and none is deleted",
	"order_history_order_fkey":     "the order is made, or held, in the same transaction",
	"payment_attempts_order_fkey":  "the order is made, or held, in the same transaction",
	"captures_order_fkey":          "the order is held in the same transaction",
	"refunds_order_fkey":           "the order is held in the same transaction",
	"refunds_capture_fkey":         "the capture was read while its order is held, and none is deleted",

	"api_key_revocations_api_key_fkey":    "the key was read in the same transaction, and none is deleted",
	"billing_periods_customer_fkey":       "the customer was read in the same transaction, and none is deleted",
	"invoice_history_invoice_fkey":        "the invoice is held in the same transaction",
	"invoice_lines_settlement_fkey":       "the settlement was read in the same transaction, and none is deleted",
	"invoices_exemption_fkey":             "the exemption was read in the same transaction, and none is deleted",
	"invoices_period_fkey":                "the month is held in the same transaction",
	"settlement_attempts_settlement_fkey": "the settlement was read in the same transaction, and none is deleted",
	"settlements_api_key_fkey":            "the key is held in the same transaction",
	"settlements_exemption_fkey":          "the exemption was read in the same transaction, and none is deleted",
	"settlements_invoice_fkey":            "the invoice is made, or moved, in the same transaction",
	"settlements_period_fkey":             "the month is pinned, or was used in, before it is settled, and none is deleted",
	"usage_batches_tenant_fkey":           "the tenant is the caller's own",
	"usage_events_api_key_fkey":           "the key is held in the same transaction",
	"usage_events_period_fkey":            "the month is pinned in the same transaction",
	"usage_events_settlement_fkey":        "the settlement is made in the same transaction",

	"tenants_pkey":                      "the id is made for it",
	"tenants_handle_key":                "ON CONFLICT DO NOTHING: it is read then",
	"payment_events_pkey":               "ON CONFLICT DO NOTHING: it is read then",
	"simulated_payments_pkey":           "ON CONFLICT DO UPDATE: a known key answers with its row",
	"simulated_payments_payment_id_key": "the id is made for it",
	"simulated_refunds_pkey":            "ON CONFLICT DO UPDATE: a known key answers with its row",
	"simulated_refunds_refund_id_key":   "the id is made for it",
	"simulated_refunds_payment_fkey":    "the payment is locked in the same transaction",
}

// A client that meets a constraint gets an answer with a meaning: every unique index and every
// foreign key has one in internal/txn/constraints.go. A new one without a meaning fails here, and
// so does a meaning whose constraint is gone.
func TestEveryConstraintHasAMeaning(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../txn/constraints.go")
	if err != nil {
		t.Fatal(err)
	}
	var meant []string
	for _, name := range regexp.MustCompile(`"(\w+_f?key|\w+_pkey)"`).FindAllStringSubmatch(string(text), -1) {
		meant = append(meant, name[1])
	}
	d := testdb.New(t)
	conn := d.Owner(t)
	if found := constraints(t, conn); len(found) < len(meant) {
		t.Fatalf("the catalogue has only %v", found)
	}
	if without := withoutMeaning(t, conn, meant); len(without) > 0 {
		t.Errorf("without a meaning in internal/txn/constraints.go: %v", without)
	}
	all := constraints(t, conn)
	for _, name := range meant {
		if !slices.Contains(all, name) {
			t.Errorf("%s has a meaning and does not exist", name)
		}
	}
	for name := range neverViolated {
		if !slices.Contains(all, name) || slices.Contains(meant, name) {
			t.Errorf("%s is listed as never violated, and does not exist or has a meaning", name)
		}
	}

	// What is unique only for some rows is no constraint, and yet its violation is met.
	for _, partial := range []string{
		"captures_one_applied_key", "payment_attempts_one_pending_key",
		"invoices_monthly_key", "billing_exemptions_one_active_key", "billing_exemptions_end_operation_key",
		"invoice_payments_provider_reference_key",
	} {
		if !slices.Contains(all, partial) {
			t.Errorf("%s is overlooked", partial)
		}
	}

	d.Exec(t, "ALTER TABLE customers ADD CONSTRAINT customers_email_key UNIQUE (tenant_id, email)")
	d.Exec(t, "CREATE UNIQUE INDEX customers_name_key ON customers (tenant_id, name)")
	d.Exec(t, "ALTER TABLE invoice_lines ADD CONSTRAINT invoice_lines_customer_fkey FOREIGN KEY (tenant_id, invoice_id) REFERENCES customers (tenant_id, id)")
	want := []string{"customers_email_key", "customers_name_key", "invoice_lines_customer_fkey"}
	if without := withoutMeaning(t, conn, meant); !slices.Equal(without, want) {
		t.Errorf("new constraints %v, noticed %v", want, without)
	}
}

// withoutMeaning are the constraints that nothing is said about.
func withoutMeaning(t *testing.T, conn *pgx.Conn, meant []string) (without []string) {
	t.Helper()
	for _, name := range constraints(t, conn) {
		if _, exempt := neverViolated[name]; !exempt && !slices.Contains(meant, name) {
			without = append(without, name)
		}
	}
	return without
}

// constraints are the names that a violation can tell of: an error about a unique index that is no
// constraint names the index. River's tables and goose's are written by River and goose.
func constraints(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	var all []string
	for _, schema := range []string{"public", "ops"} {
		all = append(all, breaches(t, conn, `SELECT c.relname::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
				WHERE c.relnamespace = $1::regnamespace AND i.indisunique AND i.indrelid::regclass::text !~ '^ops\.(river|goose)_'
			UNION SELECT conname::text FROM pg_constraint WHERE connamespace = $1::regnamespace AND contype IN ('f', 'x')
			ORDER BY 1`, schema)...)
	}
	return all
}
