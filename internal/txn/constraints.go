package txn

import (
	"github.com/jackc/pgx/v5/pgconn"

	"countersign/internal/domain"
)

// ofConstraint is what a violated constraint means, by its name. A name that is missing here is a
// defect of the server, and surfaces as one.
func ofConstraint(e *pgconn.PgError) (verdict, error) {
	switch e.ConstraintName {
	// The operation's id, or the row's own id, which only its own request knows.
	case "customers_operation_key", "customers_pkey",
		"invoice_series_operation_key", "invoice_series_pkey", "series_counters_pkey",
		"invoices_operation_key", "invoices_pkey", "invoice_lines_pkey",
		"customer_revisions_operation_key", "seller_revisions_operation_key",
		"invoice_payments_operation_key", "invoice_payments_pkey",
		"access_tokens_pkey", "access_tokens_secret_hash_key", "access_tokens_operation_key", "access_tokens_replaces_key",
		"access_token_history_operation_key", "access_token_history_once_key", "access_token_history_pkey",
		"products_operation_key", "products_pkey", "product_stock_pkey", "product_changes_operation_key", "product_changes_pkey",
		"orders_idempotency_key", "orders_operation_key", "orders_pkey", "order_lines_pkey", "order_lines_product_key",
		"order_history_operation_key", "order_history_id_key", "payment_attempts_pkey", "refunds_pkey",
		"billing_exemptions_operation_key", "billing_exemptions_end_operation_key", "billing_exemptions_pkey",
		"api_keys_operation_key", "api_keys_pkey", "api_keys_secret_hash_key", "api_key_revocations_operation_key", "api_key_revocations_pkey",
		"usage_batches_operation_key", "usage_batches_pkey", "settlements_pkey", "invoice_history_operation_key", "invoice_history_pkey",
		"invoice_lines_settlement_key", "series_changes_operation_key":
		return replayed, e

	// Somebody else was faster with the same thing: read what is there now, and decide again.
	case "series_places_pkey", "series_changes_pkey", "series_entries_pkey", "series_entries_last_key",
		"customer_revisions_pkey", "seller_revisions_pkey", "sellers_pkey", "invoice_payments_provider_reference_key",
		"invoices_monthly_key", "billing_periods_pkey", "settlements_ordinal_key", "settlement_attempts_pkey",
		"invoice_history_position_key", "usage_events_pkey",
		"order_history_pkey", "payment_attempts_ordinal_key", "payment_attempts_one_pending_key",
		"captures_pkey", "captures_one_applied_key", "refunds_provider_refund_key":
		return again, e

	// A number that the counter gave out and that is taken: once may be a counter that was just
	// mended; twice is for a person.
	case "invoices_sequence_key", "invoices_number_key", "series_periods_pkey":
		return againOnce, domain.SeriesInconsistent("its invoices").Because(e)

	case "invoice_series_code_key":
		return decided, refuse(e, domain.CodeCodeTaken, "a series with this code exists", "code")
	case "invoice_series_number_pattern_key":
		return decided, refuse(e, domain.CodeInvalidFormat, "another series prints the same numbers", "format")
	case "billing_exemptions_one_active_key":
		return decided, refuse(e, domain.CodeAlreadyExempt, "the customer is exempt already", "customerId")
	case "invoice_payments_reference_key":
		return decided, refuse(e, domain.CodeReferenceTaken, "a payment of this invoice with this reference is recorded already", "reference")
	case "products_sku_key":
		return decided, refuse(e, domain.CodeSKUTaken, "a product with this SKU exists", "sku")
	case "orders_refund_within_total":
		return decided, refuse(e, domain.CodeRefundTooLarge, "more than is left to refund", "amountMinor")
	case "invoices_customer_fkey", "orders_customer_fkey", "api_keys_customer_fkey", "billing_exemptions_customer_fkey",
		"access_tokens_customer_fkey":
		return decided, refuse(e, domain.CodeNotFound, "no such customer", "customerId")
	}
	return answer, e
}

func refuse(e *pgconn.PgError, code domain.Code, message, field string) error {
	return domain.Refuse(code, domain.Input(field), "%s", message).Because(e)
}
