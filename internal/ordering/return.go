package ordering

import (
	"cmp"
	"context"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// ReturnPaymentInput asks to give back a payment that pays nothing.
type ReturnPaymentInput struct {
	OrderID           domain.OrderID  `json:"orderId"`
	ProviderPaymentID string          `json:"providerPaymentId"`
	Reference         *string         `json:"reference"`
	Version           *domain.Version `json:"version"`
	IdempotencyKey    *string         `json:"-"`
}

// ReturnPayment gives back all that is left of a capture that is a refund due, or flagged. As with a
// refund of the order, what is asked for is written down first, under the order's guard, so that it
// is asked for once; then the provider is called, under a key that comes from the refund's id. With a
// reference the money has gone back another way, and is only recorded.
func (s *Service) ReturnPayment(ctx context.Context, caller auth.Caller, in ReturnPaymentInput) (outcome, error) {
	op, err := caller.Operation("returnPayment", "", in.IdempotencyKey, in)
	if err != nil {
		return outcome{}, err
	}
	if err := cmp.Or(domain.CheckText(domain.Input("providerPaymentId"), in.ProviderPaymentID, 255), checkReference(in.Reference)); err != nil {
		return outcome{}, err
	}
	id := domain.NewID[domain.RefundID]()
	var (
		b    *book
		owed *sqlc.Capture
		row  *sqlc.Refund // of this request, once it is written
	)
	out, err := s.transit(ctx, transition{caller: caller, op: op, order: in.OrderID, version: in.Version,
		decide: func(ctx context.Context, tx txn.Tx, order *sqlc.Order) (m move, err error) {
			if b, err = openBook(ctx, tx, order.TenantID, order.ID); err != nil {
				return m, err
			}
			c, err := b.owed(in.ProviderPaymentID)
			if err != nil {
				return m, err
			}
			owed = c // a run that is refused leaves what an earlier one has written
			m = move{to: order.Status, event: "REFUND_REQUESTED", detail: &in.ProviderPaymentID, refunded: order.RefundedMinor}
			switch {
			case in.Reference != nil:
				err = b.returned(ctx, owed, *in.Reference, &m)
			case owed.Provider != s.provider.Name():
				err = domain.BadInputAt(domain.Input("reference"), "this server does not speak with %s: give the payment back there, and say under which reference", owed.Provider)
			}
			return m, err
		},
		then: func(ctx context.Context, _ txn.Tx, _ *sqlc.Order) (err error) {
			if in.Reference == nil {
				row, err = b.insertOwnRefund(ctx, id, owed, b.left(owed))
			}
			return err
		}})
	if err != nil || out.Replayed || row == nil {
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

// owed is the capture of a payment that is to be given back, of which something is left; if it is on its
// way, its outcome comes first.
func (b *book) owed(paymentID string) (*sqlc.Capture, error) {
	at := domain.Input("providerPaymentId")
	c := b.capture(paymentID)
	switch {
	case c == nil:
		return nil, domain.Refuse(domain.CodeNotFound, at, "the order has no such payment")
	case c.State == domain.CaptureApplied:
		return nil, domain.Refuse(domain.CodeNothingToDo, at, "this payment pays the order: refundOrder gives it back")
	case c.State == domain.CaptureReturned:
		return nil, domain.Refuse(domain.CodeNothingToDo, at, "this payment was given back already")
	case b.anotherAwaited(paymentID, nil):
		return nil, domain.Refuse(domain.CodePaymentInProgress, at, "the outcome of a refund of this payment is not known yet: settleRefund ends it, once the provider is not asked any more")
	case b.left(c) < 1:
		return nil, domain.Refuse(domain.CodeNothingToDo, at, "nothing of this payment is left")
	}
	return c, nil
}

// returned records that what is left of a capture has gone back.
func (b *book) returned(ctx context.Context, c *sqlc.Capture, reference string, m *move) error {
	if err := b.checkFree(ctx, c.Provider, reference); err != nil {
		return err
	}
	amount := domain.Money{AmountMinor: b.left(c), Currency: c.Currency}
	return b.refundDue(ctx, c.Provider, domain.Fact{Kind: domain.FactRefunded, PaymentID: c.ProviderPaymentID, RefundID: reference, Amount: amount}, m)
}
