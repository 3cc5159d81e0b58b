package metering

import (
	"context"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// GrantBillingExemptionInput asks to charge a customer nothing for its usage.
type GrantBillingExemptionInput struct {
	CustomerID     domain.CustomerID `json:"customerId"`
	Reason         string            `json:"reason"`
	IdempotencyKey *string           `json:"-"`
}

type exemptionOutcome = txn.Outcome[*sqlc.BillingExemption]

// GrantExemption grants an exemption, and then waives what is open: a fold that read before this
// committed saw nothing of it.
func (s *Service) GrantExemption(ctx context.Context, caller auth.Caller, in GrantBillingExemptionInput) (exemptionOutcome, error) {
	if err := domain.CheckText(domain.Input("reason"), in.Reason, 500); err != nil {
		return exemptionOutcome{}, err
	}
	op, err := caller.Operation("grantBillingExemption", "", in.IdempotencyKey, in)
	if err != nil {
		return exemptionOutcome{}, err
	}
	id := domain.NewID[domain.ExemptionID]()
	out, err := txn.Run(ctx, s.db, txn.Write[*sqlc.BillingExemption]{
		Operation: op, OneStatement: true,
		Apply: func(ctx context.Context, tx txn.Tx) (*sqlc.BillingExemption, error) {
			return tx.InsertExemption(ctx, sqlc.InsertExemptionParams{
				TenantID: caller.TenantID, ID: id, CustomerID: in.CustomerID, Reason: in.Reason, OperationID: op.ID,
				OperationFingerprint: op.Fingerprint, GrantedBy: op.By, GrantedAt: tx.Now.Time,
			})
		},
		Find: func(ctx context.Context, q *sqlc.Queries) (found txn.Found[*sqlc.BillingExemption], err error) {
			row, err := q.FindExemptionOfOperation(ctx, sqlc.FindExemptionOfOperationParams{TenantID: caller.TenantID, OperationID: op.ID})
			if err != nil {
				return found, err
			}
			return txn.Found[*sqlc.BillingExemption]{Value: row, Fingerprint: row.OperationFingerprint, Own: row.ID == id}, nil
		},
	})
	if err == nil {
		s.lookOrLeave(context.WithoutCancel(ctx), caller.TenantID, in.CustomerID)
	}
	return out, err
}

// RemoveBillingExemptionInput asks to charge a customer again.
type RemoveBillingExemptionInput struct {
	CustomerID     domain.CustomerID `json:"customerId"`
	IdempotencyKey *string           `json:"-"`
}

// RemoveExemption ends the customer's exemption, and then reinstates what was waived by it.
func (s *Service) RemoveExemption(ctx context.Context, caller auth.Caller, in RemoveBillingExemptionInput) (exemptionOutcome, error) {
	op, err := caller.Operation("removeBillingExemption", "", in.IdempotencyKey, in)
	if err != nil {
		return exemptionOutcome{}, err
	}
	out, err := txn.Run(ctx, s.db, txn.Write[*sqlc.BillingExemption]{
		Operation: op,
		Apply: func(ctx context.Context, tx txn.Tx) (*sqlc.BillingExemption, error) {
			if _, err := customer(ctx, tx.Queries, caller, in.CustomerID); err != nil {
				return nil, err
			}
			row, err := tx.EndExemption(ctx, sqlc.EndExemptionParams{
				TenantID: caller.TenantID, CustomerID: in.CustomerID, EndedBy: &op.By, EndedAt: &tx.Now.Time, EndOperationID: &op.ID, EndFingerprint: op.Fingerprint,
			})
			if isNoRows(err) {
				return nil, domain.Refuse(domain.CodeNotExempt, domain.Input("customerId"), "the customer is not exempt")
			}
			return row, err
		},
		Find: func(ctx context.Context, q *sqlc.Queries) (found txn.Found[*sqlc.BillingExemption], err error) {
			row, err := q.FindExemptionOfEnd(ctx, sqlc.FindExemptionOfEndParams{TenantID: caller.TenantID, EndOperationID: &op.ID})
			if err != nil {
				return found, err
			}
			return txn.Found[*sqlc.BillingExemption]{Value: row, Fingerprint: row.EndFingerprint, Own: !op.KeyGiven}, nil
		},
	})
	if err == nil {
		s.lookOrLeave(context.WithoutCancel(ctx), caller.TenantID, in.CustomerID)
	}
	return out, err
}
