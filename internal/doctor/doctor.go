// Package doctor checks on a live database what must hold at any moment.
package doctor

import (
	"context"
	"time"

	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// invariants are what is checked, each by name, in queries/doctor.sql.
var invariants = []string{
	"SERIES_CONTIGUOUS",     // the numbers of a series, in each period, run from 1 without hole or twin: each is an invoice's or in an entry of the ledger
	"LEDGER_RECORDED",       // each entry of a ledger is of a change that is recorded
	"SERIES_CHRONOLOGICAL",  // and follow the order of their issue dates
	"NUMBER_IN_ITS_PERIOD",  // an invoice is numbered in the period of its issue date
	"PERIOD_RECORDED",       // what a series numbered in a period that it left is recorded, and no later period has a number
	"NUMBER_UNIQUE",         // a printed number stands on one invoice of the tenant
	"TOTAL_IS_SUM_OF_LINES", // an invoice's total is the sum of its lines and its rounding
	"COUNTER_MATCHES_DATA",  // the next number of a series follows its last
	"OPERATION_ONCE",        // an operation took effect once

	"TAX_IS_SUM_OF_LINES",        // an invoice's tax is the sum of its lines'
	"DRAFT_NOT_NUMBERED",         // a draft has no number
	"PARTIES_FROZEN",             // what has a number has the seller and the buyer of its moment, and nothing else has
	"PARTY_IS_ITS_LAST_REVISION", // a seller or a customer is what its last revision says
	"PAYMENTS_ACCOUNTED_FOR",     // what is paid is the sum of the payments
	"CREDITS_ACCOUNTED_FOR",      // what is credited is the sum of the credit notes, and no more than the total or a line
	"CREDIT_AFTER_INVOICE",       // a credit note is issued on the day of its invoice, or later
	"SETTLED_EXACTLY",            // what is paid was paid and credited for exactly what it asked, and nothing for more
	"REPLACEMENT_STANDS",         // only what is void is replaced, by another invoice of its customer
	"INVOICE_HISTORY_LEGAL",      // an invoice's steps are those of the state machine, none missing

	"ORDER_TOTAL_IS_SUM_OF_LINES", // an order's total is the sum of its lines
	"ORDER_ONE_PER_KEY",           // a key placed one order
	"ORDER_HISTORY_LEGAL",         // an order's steps are those of the state machine, none missing
	"CAPTURE_ACCOUNTED_FOR",       // each capture pays its order, is a refund due, or is flagged; what is paid was paid once
	"REFUNDS_ACCOUNTED_FOR",       // what is refunded is the sum of the refunds
	"EVENT_APPLIED_ONCE",          // a provider's refund was applied once

	"USAGE_CONSERVED",                  // what was metered is unsettled, pending, on one invoice, skipped or nothing, exactly
	"REVOKED_KEY_SETTLED",              // a revoked key has no usage that is not settled
	"SETTLEMENT_PLACED_IN_TIME",        // no settlement is pending for an hour
	"WAIVE_HAS_EVIDENCE",               // what an exemption waives names it, and it is the customer's
	"CLOSED_MONTH_HAS_NO_OPEN_INVOICE", // a closed month's invoice is final
}

// pendingTooLong is how long a settlement may be on its way: jobs look for it every minute.
const pendingTooLong = time.Hour

// Report is what a check found.
type Report struct {
	Invariants []string
	Violations []*Violation
}

// Violation is a broken invariant.
type Violation struct {
	Invariant string
	TenantID  domain.TenantID
	Message   string
	IDs       []string
}

// Healthy says whether every invariant holds.
func (r *Report) Healthy() bool { return len(r.Violations) == 0 }

// Check checks one tenant, or (the zero id) all of them, in one read-only snapshot: what it says
// was true at one moment, whatever is written meanwhile.
func Check(ctx context.Context, db *txn.DB, tenant domain.TenantID) (*Report, error) {
	return txn.Snapshot(ctx, db, func(ctx context.Context, q *sqlc.Queries) (*Report, error) {
		report := &Report{Invariants: invariants}
		rows, err := q.EveryInvoicingViolation(ctx, sqlc.EveryInvoicingViolationParams{TenantID: tenant})
		for _, row := range rows {
			report.add(violation(*row))
		}
		if err != nil {
			return report, err
		}
		ofLives, err := q.EveryInvoiceLifeViolation(ctx, sqlc.EveryInvoiceLifeViolationParams{TenantID: tenant})
		for _, row := range ofLives {
			report.add(violation(*row))
		}
		if err != nil {
			return report, err
		}
		ofOrders, err := q.EveryOrderingViolation(ctx, sqlc.EveryOrderingViolationParams{TenantID: tenant})
		for _, row := range ofOrders {
			report.add(violation(*row))
		}
		if err != nil {
			return report, err
		}
		ofUsage, err := q.EveryMeteringViolation(ctx, sqlc.EveryMeteringViolationParams{TenantID: tenant, PendingBefore: db.Clock().Add(-pendingTooLong)})
		for _, row := range ofUsage {
			report.add(violation(*row))
		}
		return report, err
	})
}

// violation is a row of each of the doctor's queries.
type violation sqlc.EveryInvoicingViolationRow

func (r *Report) add(row violation) {
	v := &Violation{Invariant: row.Invariant, TenantID: row.TenantID, Message: row.Message, IDs: make([]string, len(row.Ids))}
	for i, id := range row.Ids {
		v.IDs[i] = domain.PrintID(row.Kinds[i], id)
	}
	r.Violations = append(r.Violations, v)
}

// Stray are the webhooks that wait and are about nothing that is ours, at most limit of them: no
// violation, but an operator is to know.
func Stray(ctx context.Context, db *txn.DB, limit int32) ([]*sqlc.EveryStrayEventRow, error) {
	return txn.Read(ctx, db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.EveryStrayEventRow, error) {
		return q.EveryStrayEvent(ctx, sqlc.EveryStrayEventParams{RowLimit: limit})
	})
}
