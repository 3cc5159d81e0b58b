// Package doctor checks on a live database what must hold at any moment.
package doctor

import (
	"context"

	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// invariants are what is checked, each by name, in queries/doctor.sql.
var invariants = []string{
	"SERIES_CONTIGUOUS",     // the numbers of a series run from 1 without hole or twin
	"SERIES_CHRONOLOGICAL",  // and follow the order of their issue dates
	"NUMBER_UNIQUE",         // a printed number stands on one invoice of the tenant
	"TOTAL_IS_SUM_OF_LINES", // an invoice's total is the sum of its lines and its rounding
	"COUNTER_MATCHES_DATA",  // the next number of a series follows its last
	"OPERATION_ONCE",        // an operation took effect once
}

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
			report.add(*row)
		}
		return report, err
	})
}

func (r *Report) add(row sqlc.EveryInvoicingViolationRow) {
	v := &Violation{Invariant: row.Invariant, TenantID: row.TenantID, Message: row.Message, IDs: make([]string, len(row.Ids))}
	for i, id := range row.Ids {
		v.IDs[i] = domain.PrintID(row.Kinds[i], id)
	}
	r.Violations = append(r.Violations, v)
}
