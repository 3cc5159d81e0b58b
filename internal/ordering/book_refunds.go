package ordering

import (
	"context"

	"countersign/internal/domain"
	"countersign/sqlc"
)

// refundOrder gives back of what paid the order. A refund of our own whose answer is awaited is
// taken to be the one that the provider speaks of; its amount is counted already.
func (b *book) refundOrder(ctx context.Context, provider string, f domain.Fact, m *move) error {
	awaited := b.awaited(f.Amount.AmountMinor)
	if awaited != nil {
		if err := b.endRefund(ctx, awaited, domain.RefundSucceeded, &f.RefundID, nil); err != nil {
			return err
		}
	} else {
		m.refunded += f.Amount.AmountMinor
		if err := b.insertRefund(ctx, provider, f); err != nil {
			return err
		}
	}
	m.event = "PARTIALLY_REFUNDED"
	if m.refunded == b.order.TotalMinor && !b.anotherAwaited(awaited) {
		m.event, m.to = "REFUNDED", domain.OrderRefunded
	}
	return nil
}

func (b *book) awaited(amount domain.Cents) *sqlc.Refund {
	for _, r := range b.refunds {
		if r.Status == domain.RefundPending && r.ProviderRefundID == nil && r.AmountMinor == amount {
			return r
		}
	}
	return nil
}

func (b *book) anotherAwaited(but *sqlc.Refund) bool {
	for _, r := range b.refunds {
		if r.Status == domain.RefundPending && r != but {
			return true
		}
	}
	return false
}

// refundDue gives back a capture that paid nothing; it is settled once all of it has gone back.
func (b *book) refundDue(ctx context.Context, provider string, f domain.Fact) error {
	if err := b.insertRefund(ctx, provider, f); err != nil {
		return err
	}
	returned := f.Amount.AmountMinor
	for _, r := range b.refunds {
		if r.ProviderPaymentID == f.PaymentID && r.Status == domain.RefundSucceeded {
			returned += r.AmountMinor
		}
	}
	for _, c := range b.captures {
		if c.ProviderPaymentID != f.PaymentID || returned < c.AmountMinor {
			continue
		}
		_, err := b.tx.ReturnCapture(ctx, sqlc.ReturnCaptureParams{
			TenantID: c.TenantID, Provider: c.Provider, ProviderPaymentID: c.ProviderPaymentID, NextVersion: c.UpdatedAt.Next(b.tx.Now.Time),
		})
		return err
	}
	return nil
}

func (b *book) insertRefund(ctx context.Context, provider string, f domain.Fact) error {
	_, err := b.tx.InsertRefund(ctx, sqlc.InsertRefundParams{
		TenantID: b.order.TenantID, ID: domain.NewID[domain.RefundID](), OrderID: b.order.ID, Provider: provider,
		ProviderPaymentID: f.PaymentID, ProviderRefundID: &f.RefundID, AmountMinor: f.Amount.AmountMinor,
		Status: domain.RefundSucceeded, CreatedAt: b.tx.Now.Time, EndedAt: &b.tx.Now.Time, UpdatedAt: b.tx.Now,
	})
	return err
}

func (b *book) endRefund(ctx context.Context, r *sqlc.Refund, status domain.RefundStatus, providerID, failure *string) error {
	_, err := b.tx.EndRefund(ctx, sqlc.EndRefundParams{
		TenantID: r.TenantID, ID: r.ID, Status: status, ProviderRefundID: providerID, Failure: failure,
		EndedAt: &b.tx.Now.Time, NextVersion: r.UpdatedAt.Next(b.tx.Now.Time),
	})
	return err
}
