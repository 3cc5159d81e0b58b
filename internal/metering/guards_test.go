package metering_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"countersign/internal/domain"
	"countersign/internal/testdb"
	"countersign/sqlc"
)

var errNothing = pgx.ErrNoRows

// instead is a querier that runs each query with a part of its text replaced: what happens then is
// what that part is for.
func instead(t *testing.T, db sqlc.DBTX, part, by string) *sqlc.Queries {
	return sqlc.New(testdb.Weaken(t, db, "", part, by))
}

// foldInto writes as a fold does that has read the invoice: three more minor units.
func foldInto(q *sqlc.Queries, read *sqlc.Invoice) error {
	total, adjustment, err := domain.AddExact(read.TotalMinor, read.RoundingAdjustment, domain.DecimalOf(int64(3)))
	if err != nil {
		return err
	}
	_, err = q.FoldIntoInvoice(context.Background(), sqlc.FoldIntoInvoiceParams{
		TenantID: read.TenantID, ID: read.ID, ToStatus: domain.InvoiceOpen, TotalMinor: total, RoundingAdjustment: adjustment,
		AllowedStatuses: []domain.InvoiceStatus{domain.InvoiceOpen}, ExpectedUpdatedAt: read.UpdatedAt, NextVersion: read.UpdatedAt.Next(midJune),
	})
	return err
}

// The guard of FoldIntoInvoice as the product sends it, its two halves, and what they are for.
const (
	theVersion = "AND updated_at = $10"
	noVersion  = "AND $10::timestamptz IS NOT NULL"
	theStatus  = "status = ANY($9)"
	noStatus   = "$9::text[] IS NOT NULL"
)

// Proves the version in FoldIntoInvoice. Two folds read the same total: with it the second is
// refused; without it the second overwrites the first, and an increment is lost.
func TestWithoutTheVersionAnIncrementIsLost(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	m.revoke(t, m.used(t, "1", 10))
	read, conn := m.monthly(t), m.Owner(t)
	check(t, foldInto(sqlc.New(conn), read))
	if err := foldInto(sqlc.New(conn), read); !errors.Is(err, pgx.ErrNoRows) {
		t.Errorf("a fold on an old version: %v", err)
	}
	m.wantBooks(t, "USAGE OPEN 13")
	check(t, foldInto(instead(t, conn, theVersion, noVersion), read))
	m.wantBooks(t, "USAGE OPEN 13") // of 10 + 3 + 3
}

// Proves the list of statuses in FoldIntoInvoice. On the version of now, a paid, waived or voided
// invoice refuses the fold by its status alone; without the list it would be written over. (That a
// version rises with each move is the other half: either is enough, both are there.)
func TestWithoutTheStatusesAPaidInvoiceIsReopened(t *testing.T) {
	t.Parallel()
	one := newMeter(t)
	for _, c := range moves {
		t.Run(c.name, func(t *testing.T) {
			m := one.afresh(t)
			m.revoke(t, m.used(t, "1", 10))
			old, conn := m.monthly(t), m.Owner(t)
			c.move(t, m, old)
			now := m.monthly(t)
			if err := foldInto(sqlc.New(conn), now); !errors.Is(err, pgx.ErrNoRows) {
				t.Errorf("a fold into %s: %v", now.Status, err)
			}
			if err := foldInto(instead(t, conn, theStatus, noStatus), old); !errors.Is(err, pgx.ErrNoRows) {
				t.Errorf("the version of before the move was taken: %v", err)
			}
			for _, constraint := range []string{"open_not_numbered", "waived_has_cause", "waive_evidence", "waive_reason", "paid_has_paid_at", "reference_is_paid", "settled_is_final", "settled_exactly"} {
				m.Exec(t, "ALTER TABLE invoices DROP CONSTRAINT IF EXISTS invoices_"+constraint) // the constraints behind the guard
			}
			check(t, foldInto(instead(t, conn, theStatus, noStatus), now))
			if got := m.monthly(t); got.Status != domain.InvoiceOpen || got.TotalMinor != 13 {
				t.Errorf("without the list it is %s %d, expected it reopened", got.Status, got.TotalMinor)
			}
		})
	}
}

// Proves the CHECKs behind the guard: even a fold without any guard does not reopen what was paid.
func TestTheConstraintsAreBehindTheGuard(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	m.revoke(t, m.used(t, "1", 10))
	m.pay(t, m.monthly(t))
	var violation *pgconn.PgError
	if err := foldInto(instead(t, m.Owner(t), theStatus, noStatus), m.monthly(t)); !errors.As(err, &violation) || violation.Code != "23514" {
		t.Errorf("a paid invoice was reopened: %v", err)
	}
	m.wantBooks(t, "USAGE PAID 10 #1")
}

// Proves invoice_lines_settlement_key and the guard of PlaceSettlement: a settlement that two place
// at once, each not seeing the other's, is billed once.
func TestASettlementThatTwoPlaceAtOnceIsBilledOnce(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	m.revoke(t, m.used(t, "1", 10))
	key := m.used(t, "1", 7)
	pending := m.leavePending(t, key)
	gate := m.Gate(t, "FoldIntoInvoice")
	done := make(chan error, 2)
	for range 2 {
		other := m.on(m.db)
		go func() {
			_, err := other.Settle(context.Background(), 0)
			done <- err
		}()
	}
	gate.Await(t, 2) // both have read it pending
	gate.Open()
	check(t, <-done)
	check(t, <-done)
	if n := m.count(t, "invoice_lines WHERE settlement_id = $1", pending); n != 1 {
		t.Errorf("it is on %d lines", n)
	}
	m.wantBooks(t, "USAGE OPEN 17")
	m.sound(t)
}
