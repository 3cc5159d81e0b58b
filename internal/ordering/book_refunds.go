package ordering

import (
	"context"
	"slices"

	"countersign/internal/domain"
	"countersign/sqlc"
)

// refundOrder gives back of what paid the order. A refund of our own whose answer is awaited is
// taken to be the one that the provider speaks of; its amount is counted already.
func (b *book) refundOrder(ctx context.Context, provider string, f domain.Fact, m *move) error {
	awaited := b.awaited(f)
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
	if m.refunded == b.order.TotalMinor && !b.anotherAwaited(f.PaymentID, awaited) {
		m.event, m.to = "REFUNDED", domain.OrderRefunded
	}
	return nil
}

// awaited is a refund of our own that the provider may speak of: of the same payment and amount.
func (b *book) awaited(f domain.Fact) *sqlc.Refund {
	for _, r := range b.refunds {
		if r.Status == domain.RefundPending && r.ProviderPaymentID == f.PaymentID && r.AmountMinor == f.Amount.AmountMinor {
			return r
		}
	}
	return nil
}

// anotherAwaited says whether a payment has another refund whose answer is awaited.
func (b *book) anotherAwaited(paymentID string, but *sqlc.Refund) bool {
	return slices.ContainsFunc(b.refunds, func(r *sqlc.Refund) bool {
		return r.Status == domain.RefundPending && r != but && r.ProviderPaymentID == paymentID
	})
}

// refundDue gives back of a capture that paid nothing.
func (b *book) refundDue(ctx context.Context, provider string, f domain.Fact, m *move) (err error) {
	awaited := b.awaited(f)
	if awaited != nil {
		err = b.endRefund(ctx, awaited, domain.RefundSucceeded, &f.RefundID, nil)
	} else {
		err = b.insertRefund(ctx, provider, f)
	}
	if err != nil {
		return err
	}
	return b.settleDue(ctx, f, awaited, m)
}

// settleDue is what else a refund does that is of a capture that paid nothing: once all of it has gone
// back, it is returned. If that was what a person had to look after, and no refund of it is awaited still,
// nobody has to any more.
func (b *book) settleDue(ctx context.Context, f domain.Fact, refund *sqlc.Refund, m *move) error {
	m.event = "REFUND_SETTLED"
	c := b.capture(f.PaymentID)
	if b.given(c, domain.RefundSucceeded)+f.Amount.AmountMinor < c.AmountMinor {
		return nil
	}
	returned, err := b.tx.ReturnCapture(ctx, sqlc.ReturnCaptureParams{
		TenantID: c.TenantID, Provider: c.Provider, ProviderPaymentID: c.ProviderPaymentID, NextVersion: c.UpdatedAt.Next(b.tx.Now.Time),
	})
	if err != nil {
		return err
	}
	*c = *returned
	m.clears = b.dueEnds(f.PaymentID, refund)
	return nil
}

// dueEnds says whether a refund of a capture ends what a person had to look after: money that was due.
func (b *book) dueEnds(paymentID string, refund *sqlc.Refund) bool {
	return b.order.Attention != nil && *b.order.Attention == dueReason && !b.owes() && !b.anotherAwaited(paymentID, refund)
}

// capture is the one of a provider's payment; nil if the order has none.
func (b *book) capture(paymentID string) *sqlc.Capture {
	for _, c := range b.captures {
		if c.ProviderPaymentID == paymentID {
			return c
		}
	}
	return nil
}

// applied is the capture that pays the order; nil if none does.
func (b *book) applied() *sqlc.Capture {
	for _, c := range b.captures {
		if c.State == domain.CaptureApplied {
			return c
		}
	}
	return nil
}

// owes says whether money that pays nothing is to be given back.
func (b *book) owes() bool {
	return slices.ContainsFunc(b.captures, func(c *sqlc.Capture) bool { return c.State.Owed() && c.AmountMinor > 0 })
}

// given is how much of a capture went back, by its refunds that stand so.
func (b *book) given(c *sqlc.Capture, statuses ...domain.RefundStatus) (sum domain.Cents) {
	for _, r := range b.refunds {
		if r.ProviderPaymentID == c.ProviderPaymentID && slices.Contains(statuses, r.Status) {
			sum += r.AmountMinor
		}
	}
	return sum
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
