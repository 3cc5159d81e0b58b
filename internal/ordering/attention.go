package ordering

import (
	"context"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/paging"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// refundDue is why a person has to look at an order that was paid once too often, or too late.
const refundDue = "a payment is to be given back"

// asked is a reason for a person to look at the order, if there is none yet: one that is there may
// be graver, and both are in the history.
func (b *book) asked(reason string) *string {
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

// ReturnPaymentInput asks to give back a payment that pays nothing.
type ReturnPaymentInput struct {
	OrderID           domain.OrderID  `json:"orderId"`
	ProviderPaymentID string          `json:"providerPaymentId"`
	Version           *domain.Version `json:"version"`
	IdempotencyKey    *string         `json:"-"`
}

// ReturnPayment gives back all that is left of a capture that is a refund due, or flagged. As with a
// refund of the order, what is asked for is written down first, under the order's guard, so that it
// is asked for once; then the provider is called, under a key that comes from the refund's id.
func (s *Service) ReturnPayment(ctx context.Context, caller auth.Caller, in ReturnPaymentInput) (outcome, error) {
	op, err := caller.Operation("returnPayment", "", in.IdempotencyKey, in)
	if err != nil {
		return outcome{}, err
	}
	if err := domain.CheckText(domain.Input("providerPaymentId"), in.ProviderPaymentID, 255); err != nil {
		return outcome{}, err
	}
	id := domain.NewID[domain.RefundID]()
	var (
		b    *book
		owed *sqlc.Capture
		row  *sqlc.Refund
	)
	out, err := s.transit(ctx, transition{caller: caller, op: op, order: in.OrderID, version: in.Version,
		decide: func(ctx context.Context, tx txn.Tx, order *sqlc.Order) (_ move, err error) {
			if b, err = openBook(ctx, tx, order.TenantID, order.ID); err != nil {
				return move{}, err
			}
			owed, row = b.capture(in.ProviderPaymentID), nil
			return move{to: order.Status, event: "REFUND_REQUESTED", detail: &in.ProviderPaymentID, refunded: order.RefundedMinor}, b.checkOwed(owed)
		},
		then: func(ctx context.Context, _ txn.Tx, _ *sqlc.Order) (err error) {
			row, err = b.ask(ctx, id, owed, b.left(owed))
			return err
		}})
	if err != nil || out.Replayed || row == nil { // nil: an earlier run of this request made it, and its answer was lost
		return out, err
	}
	if done := s.refund(ctx, row, owed.Currency, op.By); done != nil {
		out.Value = done
	}
	return out, nil
}

// left is how much of a capture is not given back, nor about to be.
func (b *book) left(c *sqlc.Capture) domain.Cents {
	return c.AmountMinor - b.given(c, domain.RefundPending, domain.RefundSucceeded)
}

// checkOwed refuses to give back what is not owed, or is on its way.
func (b *book) checkOwed(c *sqlc.Capture) error {
	at := domain.Input("providerPaymentId")
	switch {
	case c == nil:
		return domain.Refuse(domain.CodeNotFound, at, "the order has no such payment")
	case c.State == domain.CaptureApplied:
		return domain.Refuse(domain.CodeNothingToReturn, at, "this payment pays the order: refundOrder gives it back")
	case c.State == domain.CaptureReturned:
		return domain.Refuse(domain.CodeNothingToReturn, at, "this payment was given back already")
	case b.left(c) < 1:
		return domain.Refuse(domain.CodeNothingToReturn, at, "nothing of this payment is left that is not about to be given back")
	}
	return nil
}

// ClearAttentionInput says that a person has looked at an order.
type ClearAttentionInput struct {
	OrderID        domain.OrderID  `json:"orderId"`
	Note           string          `json:"note"`
	Version        *domain.Version `json:"version"`
	IdempotencyKey *string         `json:"-"`
}

// ClearAttention takes an order from the list of those that a person has to look at, and keeps what
// that person says of it in the history. Money that is to be given back is not cleared away: MONEY_OWED.
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
			if err == nil && b.owes() {
				err = domain.Refuse(domain.CodeMoneyOwed, domain.Input("orderId"), "a payment of this order is to be given back: returnPayment does that")
			}
			return move{to: order.Status, event: "ATTENTION_CLEARED", detail: &in.Note, refunded: order.RefundedMinor, clears: true}, err
		}})
}
