package database

import (
	"encoding/json"

	"github.com/jackc/pgx/v5/pgtype"

	"countersign/internal/domain"
)

// registerTypes says what the domain's types are in the database. Where a statement is described
// before it is sent, the description says it; behind a pooler nothing may be, and an id would be sent
// as it is printed, a slice not at all.
func registerTypes(m *pgtype.Map) {
	registerAs[domain.TenantID](m, "uuid")
	registerAs[domain.TokenID](m, "uuid")
	registerAs[domain.CustomerID](m, "uuid")
	registerAs[domain.SeriesID](m, "uuid")
	registerAs[domain.InvoiceID](m, "uuid")
	registerAs[domain.ProductID](m, "uuid")
	registerAs[domain.OrderID](m, "uuid")
	registerAs[domain.AttemptID](m, "uuid")
	registerAs[domain.RefundID](m, "uuid")
	registerAs[domain.APIKeyID](m, "uuid")
	registerAs[domain.SettlementID](m, "uuid")
	registerAs[domain.ExemptionID](m, "uuid")
	registerAs[domain.OperationID](m, "uuid")
	registerAs[domain.UUID](m, "uuid")

	registerAs[domain.InvoiceStatus](m, "text")
	registerAs[domain.InvoiceKind](m, "text")
	registerAs[domain.SeriesDocument](m, "text")
	registerAs[domain.NumberFormat](m, "text")
	registerAs[domain.APIKeyStatus](m, "text")
	registerAs[domain.SettlementOutcome](m, "text")
	registerAs[domain.CurrencyCode](m, "text")
	registerAs[domain.OrderStatus](m, "text")
	registerAs[domain.AttemptStatus](m, "text")
	registerAs[domain.CaptureState](m, "text")
	registerAs[domain.RefundStatus](m, "text")
	registerAs[domain.FactKind](m, "text")
	registerAs[domain.Role](m, "text")
	registerAs[domain.Scope](m, "text")
	registerAs[domain.SeriesReset](m, "text")
	registerAs[domain.SeriesCharacters](m, "text")
	registerAs[domain.SeriesPreset](m, "text")

	registerAs[domain.Cents](m, "int8")
	registerAs[domain.Fingerprint](m, "bytea")
	registerAs[domain.Date](m, "date")
	registerAs[domain.Month](m, "date")
	registerAs[json.RawMessage](m, "jsonb")
}

func registerAs[T any](m *pgtype.Map, name string) {
	var value T
	m.RegisterDefaultPgType(value, name)
	m.RegisterDefaultPgType(&value, name)
	m.RegisterDefaultPgType([]T{}, "_"+name)
}
