package metering

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// errNotYet is what Find says of what has not been done.
var errNotYet = pgx.ErrNoRows

// isBusyConflict says whether a write was refused every time it was tried.
func isBusyConflict(err error) bool {
	var refusal *domain.Refusal
	return errors.As(err, &refusal) && refusal.Code == domain.CodeBusy && txn.IsConflict(err)
}

// reading is how a placement reads: the optimistic way shares the month and reads the rest, the
// pessimistic one holds everything.
type reading int

const (
	optimistic reading = iota
	pessimistic
)

// readPlacement reads every input of a placement, in the order of the locks: month, settlement,
// invoice; the exemption, which no lock covers, last.
func readPlacement(ctx context.Context, tx txn.Tx, tenant domain.TenantID, id domain.SettlementID, how reading) (*placement, error) {
	p := &placement{tx: tx}
	var err error
	if p.settlement, err = settlement(ctx, tx.Queries, tenant, id); err != nil {
		return p, err
	}
	s := p.settlement
	if how == pessimistic {
		p.period, err = tx.LockPeriod(ctx, sqlc.LockPeriodParams{TenantID: tenant, CustomerID: s.CustomerID, Month: s.Month})
	} else {
		p.period, err = tx.SharePeriod(ctx, sqlc.SharePeriodParams{TenantID: tenant, CustomerID: s.CustomerID, Month: s.Month})
	}
	if err != nil {
		return p, err
	}
	if how == pessimistic {
		if p.settlement, err = tx.LockSettlement(ctx, sqlc.LockSettlementParams{TenantID: tenant, ID: id}); err != nil {
			return p, err
		}
	}
	if p.invoice, err = monthlyInvoice(ctx, tx, p.settlement, how); err != nil {
		return p, err
	}
	people, err := tx.GetCustomers(ctx, sqlc.GetCustomersParams{TenantID: tenant, Ids: []domain.CustomerID{s.CustomerID}})
	if err != nil {
		return p, err
	}
	p.customer = people[0]
	p.exemption, err = exemption(ctx, tx.Queries, tenant, s.CustomerID)
	return p, err
}

// monthlyInvoice is the settlement's month's; nil if there is none yet.
func monthlyInvoice(ctx context.Context, tx txn.Tx, s *sqlc.Settlement, how reading) (*sqlc.Invoice, error) {
	month := s.Month
	invoice, err := tx.FindMonthlyInvoice(ctx, sqlc.FindMonthlyInvoiceParams{TenantID: s.TenantID, CustomerID: s.CustomerID, UsageMonth: &month})
	switch {
	case isNoRows(err):
		return nil, nil
	case err != nil || how == optimistic:
		return invoice, err
	}
	return tx.LockInvoice(ctx, sqlc.LockInvoiceParams{TenantID: s.TenantID, ID: invoice.ID})
}
