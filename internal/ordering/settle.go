package ordering

import (
	"cmp"
	"context"
	"strings"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// SettleRefundInput says what became of a refund that the provider tells nothing of.
type SettleRefundInput struct {
	RefundID       domain.RefundID `json:"refundId"`
	Reference      *string         `json:"reference"`
	Note           string          `json:"note"`
	IdempotencyKey *string         `json:"-"`
}

// SettleRefund records a person's word on a refund whose outcome is not known and that nobody asks the
// provider about any more: with a reference it was made, without one it was not. While the provider is
// asked still, the answer is PAYMENT_IN_PROGRESS.
func (s *Service) SettleRefund(ctx context.Context, caller auth.Caller, in SettleRefundInput) (outcome, error) {
	op, err := caller.Operation("settleRefund", "", in.IdempotencyKey, in)
	if err != nil {
		return outcome{}, err
	}
	if err := cmp.Or(domain.CheckText(domain.Input("note"), in.Note, 500), checkReference(in.Reference)); err != nil {
		return outcome{}, err
	}
	row, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) (*sqlc.Refund, error) {
		return q.GetRefund(ctx, sqlc.GetRefundParams{TenantID: caller.TenantID, ID: in.RefundID})
	})
	switch {
	case isNoRows(err):
		return outcome{}, domain.Refuse(domain.CodeNotFound, domain.Input("refundId"), "no such refund")
	case err != nil:
		return outcome{}, err
	}
	return s.transit(ctx, transition{caller: caller, op: op, order: row.OrderID,
		decide: func(ctx context.Context, tx txn.Tx, order *sqlc.Order) (move, error) {
			b, err := openBook(ctx, tx, order.TenantID, order.ID)
			if err != nil {
				return move{}, err
			}
			mine := b.refund(row.ID)
			switch {
			case mine.Status != domain.RefundPending:
				return move{}, domain.Refuse(domain.CodeNothingToDo, domain.Input("refundId"), "the refund has %s already", mine.Status)
			case s.db.Clock().Sub(mine.CreatedAt) < s.provider.KeyWindow():
				return move{}, domain.Refuse(domain.CodePaymentInProgress, domain.Input("refundId"), "the provider is still asked about this refund: look again later")
			}
			f := domain.Fact{Kind: domain.FactRefunded, PaymentID: mine.ProviderPaymentID, Amount: domain.Money{AmountMinor: mine.AmountMinor}}
			if in.Reference != nil {
				f.RefundID = *in.Reference
				if err := b.checkFree(ctx, mine.Provider, f.RefundID); err != nil {
					return move{}, err
				}
			}
			m, err := b.conclude(ctx, mine, f, "a person says that it was not made")
			note := in.Note
			if m.attention != nil {
				note = *m.attention + ": " + note
			}
			m.detail = &note
			return m, err
		}})
}

// checkReference refuses what cannot be a refund's id; nil is none.
func checkReference(reference *string) error {
	if reference == nil {
		return nil
	}
	if strings.TrimSpace(*reference) != *reference { // the provider will not report it so
		return domain.BadInputAt(domain.Input("reference"), "a reference has no blanks around it")
	}
	return domain.CheckText(domain.Input("reference"), *reference, 255)
}

// checkFree refuses a reference that another refund has.
func (b *book) checkFree(ctx context.Context, provider, reference string) error {
	_, err := b.tx.FindRefundOfProvider(ctx, sqlc.FindRefundOfProviderParams{TenantID: b.order.TenantID, Provider: provider, ProviderRefundID: reference})
	if isNoRows(err) {
		return nil
	}
	if err == nil {
		err = domain.Refuse(domain.CodeReferenceTaken, domain.Input("reference"), "a refund with this reference is recorded already")
	}
	return err
}
