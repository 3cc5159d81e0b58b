// Package metering says what happens to customers' API keys and what they use: metering, revoking,
// folding a key's usage into the month's invoice, exemptions, recovery, closing a month.
package metering

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// Service holds the use cases.
type Service struct{ db *txn.DB }

// New makes a Service of a database.
func New(db *txn.DB) *Service { return &Service{db} }

func isNoRows(err error) bool { return errors.Is(err, pgx.ErrNoRows) }

func noSuch(noun, field string) error {
	return domain.Refuse(domain.CodeNotFound, domain.Input(field), "no such %s", noun)
}

// customer reads a customer that the caller may know of.
func customer(ctx context.Context, q *sqlc.Queries, caller auth.Caller, id domain.CustomerID) (*sqlc.Customer, error) {
	rows, err := q.GetCustomers(ctx, sqlc.GetCustomersParams{TenantID: caller.TenantID, Ids: []domain.CustomerID{id}})
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 || !caller.Sees(id) {
		return nil, noSuch("customer", "customerId")
	}
	return rows[0], nil
}

// exemption is the customer's that has not ended; nil if there is none.
func exemption(ctx context.Context, q *sqlc.Queries, tenant domain.TenantID, customer domain.CustomerID) (*domain.ExemptionID, error) {
	rows, err := q.ListActiveExemptions(ctx, sqlc.ListActiveExemptionsParams{TenantID: tenant, CustomerIds: []domain.CustomerID{customer}})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0].ID, nil
}

// pin makes a month's row, if it is not there yet: it comes before anything that happens in the
// month.
func pin(ctx context.Context, q *sqlc.Queries, c *sqlc.Customer, months ...domain.Month) error {
	zone, err := domain.ParseTimeZone(c.TimeZone)
	if err != nil {
		return err
	}
	arg := sqlc.InsertPeriodsParams{TenantID: c.TenantID}
	for _, m := range months {
		start, end := m.Bounds(zone)
		arg.CustomerIds = append(arg.CustomerIds, domain.UUID(c.ID))
		arg.Months = append(arg.Months, m.Date)
		arg.TimeZones = append(arg.TimeZones, c.TimeZone)
		arg.Starts = append(arg.Starts, start)
		arg.Ends = append(arg.Ends, end)
	}
	_, err = q.InsertPeriods(ctx, arg)
	return err
}
