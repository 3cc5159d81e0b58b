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
		"access_tokens_pkey", "access_tokens_secret_hash_key":
		return replayed, e

	// A number that the counter gave out and that is taken: once may be a counter that was just
	// mended; twice is for a person.
	case "invoices_sequence_key", "invoices_number_key":
		return againOnce, domain.Refuse(domain.CodeSeriesInconsistent, nil,
			"the series' counter is behind its invoices: nothing was written, and an operator has to look at it").Because(e)

	case "invoice_series_code_key":
		return answer, refuse(e, domain.CodeCodeTaken, "a series with this code exists", "code")
	case "invoice_series_number_pattern_key":
		return answer, refuse(e, domain.CodeInvalidFormat, "another series prints the same numbers", "format")
	case "invoices_customer_fkey", "access_tokens_customer_fkey":
		return answer, refuse(e, domain.CodeNotFound, "no such customer", "customerId")
	}
	return answer, e
}

func refuse(e *pgconn.PgError, code domain.Code, message, field string) error {
	return domain.Refuse(code, domain.Input(field), "%s", message).Because(e)
}
