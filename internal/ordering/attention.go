package ordering

import (
	"context"
	"slices"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/paging"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// dueReason is why a person has to look at an order that was paid once too often, or too late.
const dueReason = "a payment is to be given back"

// unlessGraver is a reason for a person to look at the order, if there is none yet: one that is there
// may be graver, and both are in the history.
func (b *book) unlessGraver(reason string) *string {
	if b.order.Attention != nil {
		return nil
	}
	return &reason
}

// ListToLookAt returns a page of the orders that a person has to look at, in order of creation.
func (s *Service) ListToLookAt(ctx context.Context, caller auth.Caller, p paging.Request[domain.OrderID]) (paging.Page[*sqlc.Order], error) {
	arg := sqlc.ListOrdersToLookAtParams{TenantID: caller.TenantID, AfterID: p.After, BeforeID: p.Before, RowLimit: p.Limit()}
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Order, error) {
		if p.Backward {
			return q.ListOrdersToLookAtBackward(ctx, sqlc.ListOrdersToLookAtBackwardParams(arg))
		}
		return q.ListOrdersToLookAt(ctx, arg)
	})
	return paging.Cut(p, rows), err
}

// ClearAttentionInput says that a person has looked at an order.
type ClearAttentionInput struct {
	OrderID        domain.OrderID  `json:"orderId"`
	Note           string          `json:"note"`
	Version        *domain.Version `json:"version"`
	IdempotencyKey *string         `json:"-"`
}

// ClearAttention takes an order from the list of those that a person has to look at, and keeps what
// that person says of it in the history. Money is not cleared away: MONEY_OWED while a payment is to be
// given back, PAYMENT_IN_PROGRESS while the outcome of a payment or refund is not known.
func (s *Service) ClearAttention(ctx context.Context, caller auth.Caller, in ClearAttentionInput) (outcome, error) {
	op, err := caller.Operation("clearAttention", "", in.IdempotencyKey, in)
	if err != nil {
		return outcome{}, err
	}
	if err := domain.CheckText(domain.Input("note"), in.Note, 500); err != nil {
		return outcome{}, err
	}
	return s.transit(ctx, transition{caller: caller, op: op, order: in.OrderID, version: in.Version,
		decide: func(ctx context.Context, tx txn.Tx, order *sqlc.Order) (move, error) {
			b, err := openBook(ctx, tx, order.TenantID, order.ID)
			if err == nil {
				err = b.checkQuiet()
			}
			return move{to: order.Status, event: "ATTENTION_CLEARED", detail: &in.Note, refunded: order.RefundedMinor, clears: true}, err
		}})
}

// checkQuiet refuses to end the matter of an order whose money is not where it belongs.
func (b *book) checkQuiet() error {
	at := domain.Input("orderId")
	switch {
	case b.order.Attention == nil:
		return domain.Refuse(domain.CodeNothingToDo, at, "nobody has to look at this order")
	case slices.ContainsFunc(b.refunds, func(r *sqlc.Refund) bool { return r.Status == domain.RefundPending }):
		return domain.Refuse(domain.CodePaymentInProgress, at, "the outcome of a refund is not known: settleRefund ends it, once the provider is not asked any more")
	case b.waiting() != nil:
		return domain.Refuse(domain.CodePaymentInProgress, at, "the outcome of a payment is not known: cancelOrder asks the provider once more, and ends it")
	case b.owes():
		return domain.Refuse(domain.CodeMoneyOwed, at, "a payment of this order is to be given back: returnPayment does that")
	}
	return nil
}
