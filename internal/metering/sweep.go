package metering

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// Settled is what a sweep did.
type Settled struct {
	Revocations int // announced and left, finished now
	Settlements int // pending and left, placed now
	Left        int // of all these, that could not be done now
	Looked      int // invoices that nobody had looked at since an exemption or a waive
}

const sweepPage = 100

// Settle finishes what crashes have left: announced revocations, pending settlements, invoices that
// nobody has looked at. What it does is safe to do twice, and at once. What cannot be done now is
// left for the next time, and holds nothing else up.
func (s *Service) Settle(ctx context.Context, minAge time.Duration) (r Settled, err error) {
	before := s.db.Clock().Add(-minAge)
	err = errors.Join(s.finishRevocations(ctx, before, &r), s.placePending(ctx, before, &r), s.lookAtWaives(ctx, &r))
	return r, err
}

func (s *Service) finishRevocations(ctx context.Context, before time.Time, r *Settled) error {
	arg := sqlc.EveryUnfinishedRevocationParams{Before: before, RowLimit: sweepPage}
	for {
		rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.APIKeyRevocation, error) {
			return q.EveryUnfinishedRevocation(ctx, arg)
		})
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, row := range rows {
			arg.AfterTenantID, arg.AfterKeyID = domain.UUID(row.TenantID), domain.UUID(row.APIKeyID)
			if err := s.finishRevocation(ctx, row.TenantID, row.APIKeyID); err != nil {
				s.leave(ctx, r, "a revocation is finished later", slog.String("key", row.APIKeyID.String()), err)
				continue
			}
			r.Revocations++
		}
	}
}

func (s *Service) placePending(ctx context.Context, before time.Time, r *Settled) error {
	arg := sqlc.EveryPendingSettlementParams{Before: before, RowLimit: sweepPage}
	for {
		rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Settlement, error) {
			return q.EveryPendingSettlement(ctx, arg)
		})
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, row := range rows {
			arg.AfterID = row.ID
			if _, err := s.place(ctx, row.TenantID, row.ID); err != nil {
				s.leave(ctx, r, "a settlement is placed later", slog.String("settlement", row.ID.String()), err)
				continue
			}
			r.Settlements++
			s.lookOrLeave(ctx, row.TenantID, row.CustomerID)
		}
	}
}

func (s *Service) lookAtWaives(ctx context.Context, r *Settled) error {
	arg := sqlc.EveryInvoiceToLookAtParams{RowLimit: sweepPage}
	for {
		rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Invoice, error) {
			return q.EveryInvoiceToLookAt(ctx, arg)
		})
		if err != nil || len(rows) == 0 {
			return err
		}
		for _, row := range rows {
			arg.AfterID = row.ID
			if err := s.look(ctx, row.TenantID, row.CustomerID); err != nil {
				s.leave(ctx, r, "a customer's invoices are looked at later", slog.String("customer", row.CustomerID.String()), err)
				continue
			}
			r.Looked++
		}
	}
}

// leave counts and logs what could not be done.
func (s *Service) leave(ctx context.Context, r *Settled, what string, which slog.Attr, err error) {
	r.Left++
	s.db.Logger.WarnContext(ctx, what, which, slog.Any("error", err))
}
