package ordering

import (
	"context"
	"errors"
	"log/slog"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/payment"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// RefundOrderInput asks to give back an order's money, all that is left of it if no amount is said.
type RefundOrderInput struct {
	OrderID        domain.OrderID  `json:"orderId"`
	AmountMinor    *domain.Cents   `json:"amountMinor"`
	Version        *domain.Version `json:"version"`
	IdempotencyKey *string         `json:"-"`
}

// Refund gives money back: the amount is taken from what may still be refunded first, under the
// order's guard, so that two refunds cannot both have it; then the provider is asked, outside of
// any transaction, under a key that comes from the refund's id.
func (s *Service) Refund(ctx context.Context, caller auth.Caller, in RefundOrderInput) (outcome, error) {
	op, err := caller.Operation("refundOrder", "", in.IdempotencyKey, in)
	if err != nil {
		return outcome{}, err
	}
	if in.AmountMinor != nil && *in.AmountMinor < 1 {
		return outcome{}, domain.BadInputAt(domain.Input("amountMinor"), "an amount is at least 1")
	}
	id := domain.NewID[domain.RefundID]()
	var row *sqlc.Refund
	out, err := s.transit(ctx, transition{caller: caller, op: op, order: in.OrderID, version: in.Version, toward: domain.OrderRefunded,
		decide: func(_ context.Context, _ txn.Tx, order *sqlc.Order) (move, error) {
			left := order.TotalMinor - order.RefundedMinor
			amount := left
			set(&amount, in.AmountMinor)
			if amount > left || amount == 0 {
				return move{}, domain.Refuse(domain.CodeRefundTooLarge, domain.Input("amountMinor"), "%d minor units are left to refund", left)
			}
			return move{to: order.Status, event: "REFUND_REQUESTED", refunded: order.RefundedMinor + amount}, nil
		},
		then: func(ctx context.Context, tx txn.Tx, order *sqlc.Order) (err error) {
			b, err := openBook(ctx, tx, order.TenantID, order.ID)
			if err != nil {
				return err
			}
			if paid := b.applied(); paid != nil && paid.Provider != s.provider.Name() {
				return domain.BadInputAt(domain.Input("orderId"), "this server does not speak with %s, which took the payment", paid.Provider)
			}
			row, err = b.request(ctx, id)
			return err
		}})
	if err != nil || out.Replayed {
		return out, err
	}
	if row == nil || row.ID != id { // an earlier run of this request made it, and its answer was lost
		return out, nil
	}
	if done := s.refund(ctx, row, out.Value.Currency, op.By); done != nil {
		out.Value = done
	}
	return out, nil
}

// request writes a refund down before the provider is asked: of what is reserved and has no row
// yet.
func (b *book) request(ctx context.Context, id domain.RefundID) (*sqlc.Refund, error) {
	applied := b.applied()
	if applied == nil {
		return nil, errors.New("a paid order has no capture")
	}
	return b.insertOwnRefund(ctx, id, applied, b.order.RefundedMinor-b.given(applied, domain.RefundPending, domain.RefundSucceeded))
}

// insertOwnRefund writes down that a capture, or a part of it, is to be given back.
func (b *book) insertOwnRefund(ctx context.Context, id domain.RefundID, c *sqlc.Capture, amount domain.Cents) (*sqlc.Refund, error) {
	return b.tx.InsertRefund(ctx, sqlc.InsertRefundParams{
		TenantID: b.order.TenantID, ID: id, OrderID: b.order.ID, Provider: c.Provider, ProviderPaymentID: c.ProviderPaymentID,
		AmountMinor: amount, Status: domain.RefundPending, CreatedAt: b.tx.Now.Time, UpdatedAt: b.tx.Now,
	})
}

// refund asks the provider for a refund that is written down, and records the answer; nil if there
// is none. The refund of another provider's payment waits for a server that has that provider.
func (s *Service) refund(ctx context.Context, row *sqlc.Refund, currency domain.CurrencyCode, by string) *sqlc.Order {
	if row.Provider != s.provider.Name() {
		return nil
	}
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	amount := domain.Money{AmountMinor: row.AmountMinor, Currency: currency}
	providerID, err := s.provider.Refund(call, payment.Refund{Key: row.ID.String(), PaymentID: row.ProviderPaymentID, Amount: amount})
	if err != nil && !errors.Is(err, payment.ErrRefused) {
		s.db.Logger.WarnContext(ctx, "refund outcome unknown", slog.String("refund", row.ID.String()), slog.Any("error", err))
		return nil
	}
	f := domain.Fact{Kind: domain.FactRefunded, PaymentID: row.ProviderPaymentID, RefundID: providerID, Amount: amount}
	op, err := factOperation(row.TenantID, by, row.ID.String(), f)
	if err != nil {
		return nil
	}
	order, err := s.write(context.WithoutCancel(ctx), row.TenantID, row.OrderID, op, func(ctx context.Context, b *book) error {
		return b.answered(ctx, s.provider.Name(), row.ID, told{Fact: f, op: op})
	})
	if err != nil {
		s.db.Logger.WarnContext(ctx, "refund not recorded yet", slog.String("refund", row.ID.String()), slog.Any("error", err))
		return nil
	}
	return order
}

// answered records the provider's answer to a refund of our own: its id, or "" for a refusal, which
// puts back what was reserved.
func (b *book) answered(ctx context.Context, provider string, id domain.RefundID, t told) error {
	providerID := t.RefundID
	mine := b.refund(id)
	switch {
	case mine == nil || b.standing().Refunds[providerID]:
		return nil // a webhook was faster
	case mine.Status != domain.RefundPending && providerID == "":
		return nil
	case mine.Status != domain.RefundPending: // a webhook about another refund was taken for ours
		_, _, err := b.apply(ctx, provider, t)
		return err
	}
	m, err := b.conclude(ctx, mine, t.Fact, "the provider refuses")
	if err != nil {
		return err
	}
	m.op = t.op
	if b.order, err = m.run(ctx, b.tx, b.order); err != nil {
		return err
	}
	return b.read(ctx)
}

// conclude ends a refund of our own whose outcome was not known: with the id that it has, or without
// one, since it was not made, which has a reason. It says which move of the order that is.
func (b *book) conclude(ctx context.Context, mine *sqlc.Refund, f domain.Fact, whyNot string) (move, error) {
	m := move{to: b.order.Status, event: "PARTIALLY_REFUNDED", refunded: b.order.RefundedMinor}
	of := b.capture(mine.ProviderPaymentID).State
	if f.RefundID == "" {
		m.event, m.detail = "REFUND_FAILED", &whyNot
		switch of {
		case domain.CaptureApplied:
			m.refunded -= mine.AmountMinor
		case domain.CaptureReturned: // by others
			m.clears = b.dueEnds(mine.ProviderPaymentID, mine)
		}
		return m, b.endRefund(ctx, mine, domain.RefundFailed, nil, &whyNot)
	}
	switch {
	case of == domain.CaptureReturned: // others gave it back meanwhile
		reason := "a capture was refunded a second time"
		m.event, m.detail, m.attention = "FLAGGED", &reason, &reason
	case of.Owed():
		if err := b.settleDue(ctx, f, mine, &m); err != nil {
			return m, err
		}
	case m.refunded == b.order.TotalMinor && !b.anotherAwaited(mine.ProviderPaymentID, mine):
		m.event, m.to = "REFUNDED", domain.OrderRefunded
	}
	return m, b.endRefund(ctx, mine, domain.RefundSucceeded, &f.RefundID, nil)
}

// refund is the one with an id; nil if the order has none.
func (b *book) refund(id domain.RefundID) *sqlc.Refund {
	for _, r := range b.refunds {
		if r.ID == id {
			return r
		}
	}
	return nil
}
