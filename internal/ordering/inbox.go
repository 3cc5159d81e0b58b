package ordering

import (
	"context"

	"countersign/internal/domain"
	"countersign/sqlc"
)

// applyInbox applies what the inbox holds for the order, in the order of arrival, until nothing
// more can be: an event may have waited for another.
func (b *book) applyInbox(ctx context.Context, provider string) error {
	for {
		events, err := b.tx.EveryPaymentEventOfReference(ctx, sqlc.EveryPaymentEventOfReferenceParams{Reference: b.order.ID.String(), Provider: provider})
		if err != nil {
			return err
		}
		progress := false
		for _, e := range events {
			op, err := domain.NewOperation(b.order.TenantID, provider, "paymentEvent", provider, &e.EventID, e.Kind)
			if err != nil {
				return err
			}
			result, kept, err := b.apply(ctx, provider, told{Fact: fact(e), failure: "the provider says that it failed", op: op})
			if err != nil {
				return err
			}
			if kept {
				if err := b.keep(ctx, e); err != nil {
					return err
				}
				continue
			}
			progress = true
			_, err = b.tx.EveryPaymentEventDone(ctx, sqlc.EveryPaymentEventDoneParams{
				Provider: e.Provider, EventID: e.EventID, TenantID: &b.order.TenantID, ProcessedAt: &b.tx.Now.Time, Result: &result,
			})
			if err != nil {
				return err
			}
		}
		if !progress {
			return nil
		}
	}
}

// keep leaves an event in the inbox, as this tenant's: it may have come before its order.
func (b *book) keep(ctx context.Context, e *sqlc.OpsPaymentEvent) error {
	if e.TenantID != nil {
		return nil
	}
	_, err := b.tx.EveryPaymentEventKept(ctx, sqlc.EveryPaymentEventKeptParams{Provider: e.Provider, EventID: e.EventID, TenantID: &b.order.TenantID})
	if isNoRows(err) {
		return nil // it is by now
	}
	return err
}

func fact(e *sqlc.OpsPaymentEvent) domain.Fact {
	return domain.Fact{Kind: e.Kind, PaymentID: e.PaymentID, RefundID: e.RefundID, Amount: domain.Money{AmountMinor: e.AmountMinor, Currency: e.Currency}}
}
