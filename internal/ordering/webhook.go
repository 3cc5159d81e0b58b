package ordering

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"countersign/internal/domain"
	"countersign/internal/payment"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// Receive takes an event that the provider has signed. The event and what it does are one
// transaction; a replay stops at the inbox and changes nothing. A known id with other content is
// kept beside the first for a person, and does nothing. An event that is too early, or about
// nothing, is kept. An error means that nothing was taken in: the provider is to send it again.
func (s *Service) Receive(ctx context.Context, e payment.Event) error {
	about, err := s.referred(ctx, e.Reference)
	if err != nil {
		return err
	}
	_, err = txn.Run(ctx, s.db, txn.Write[struct{}]{
		Apply: func(ctx context.Context, tx txn.Tx) (none struct{}, err error) {
			row, err := tx.EveryPaymentEventInsert(ctx, sqlc.EveryPaymentEventInsertParams{
				Provider: s.provider.Name(), EventID: e.ID, Kind: e.Fact.Kind, Reference: e.Reference, TenantID: about.tenant, PaymentID: e.Fact.PaymentID,
				RefundID: e.Fact.RefundID, AmountMinor: e.Fact.Amount.AmountMinor, Currency: e.Fact.Amount.Currency, ReceivedAt: tx.Now.Time,
			})
			if isNoRows(err) {
				row, err = s.known(ctx, tx, e)
			}
			if err != nil || about.tenant == nil || row.ProcessedAt != nil {
				return none, err
			}
			return none, s.applyTo(ctx, tx, about, row)
		},
		// The inbox itself says what was taken in: a second run finds the event there.
		Find: func(context.Context, *sqlc.Queries) (txn.Found[struct{}], error) {
			return txn.Found[struct{}]{}, errNoOperation
		},
	})
	return err
}

// known is an event that the inbox has already; if it says something else now, that is kept too.
func (s *Service) known(ctx context.Context, tx txn.Tx, e payment.Event) (*sqlc.OpsPaymentEvent, error) {
	row, err := tx.EveryPaymentEvent(ctx, sqlc.EveryPaymentEventParams{Provider: s.provider.Name(), EventID: e.ID})
	if err != nil || fact(row) == e.Fact && row.Reference == e.Reference {
		return row, err
	}
	conflict, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	return tx.EveryPaymentEventConflict(ctx, sqlc.EveryPaymentEventConflictParams{Provider: row.Provider, EventID: row.EventID, Conflict: conflict})
}

// referent is what a webhook is about: an order or an invoice, and whose it is; no tenant if it is
// nothing of ours.
type referent struct {
	tenant  *domain.TenantID
	order   domain.OrderID
	invoice *domain.InvoiceID
}

// referred finds what a webhook names.
func (s *Service) referred(ctx context.Context, reference string) (r referent, err error) {
	invoice, err := domain.ParseID[domain.InvoiceID](reference)
	if err == nil && s.invoices != nil {
		r.invoice = &invoice
	} else if r.order, err = domain.ParseID[domain.OrderID](reference); err != nil {
		return r, nil
	}
	tenant, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) (domain.TenantID, error) {
		if r.invoice != nil {
			return q.EveryInvoiceReference(ctx, sqlc.EveryInvoiceReferenceParams{ID: invoice})
		}
		return q.EveryOrderReference(ctx, sqlc.EveryOrderReferenceParams{ID: r.order})
	})
	if isNoRows(err) {
		return r, nil
	}
	r.tenant = &tenant
	return r, err
}

// applyTo applies an event to what it is about: an order, with whatever else the inbox holds for it,
// or an invoice.
func (s *Service) applyTo(ctx context.Context, tx txn.Tx, about referent, e *sqlc.OpsPaymentEvent) error {
	if about.invoice == nil {
		b, err := openBook(ctx, tx, *about.tenant, about.order)
		if err != nil {
			return err
		}
		return b.applyInbox(ctx, s.provider.Name())
	}
	op, err := domain.NewOperation(*about.tenant, e.Provider, "paymentEvent", e.Provider, &e.EventID, e.Kind)
	if err != nil {
		return err
	}
	result, err := s.invoices(ctx, tx, *about.tenant, *about.invoice, fact(e), op)
	if err != nil {
		return err
	}
	_, err = tx.EveryPaymentEventDone(ctx, sqlc.EveryPaymentEventDoneParams{
		Provider: e.Provider, EventID: e.EventID, TenantID: about.tenant, ProcessedAt: &tx.Now.Time, Result: &result,
	})
	if isNoRows(err) { // somebody else has applied it
		return txn.ErrRefused
	}
	return err
}

// sweepEvents applies every event that waits in the inbox and can be applied by now.
func (s *Service) sweepEvents(ctx context.Context, r *Reconciled) error {
	after := sqlc.EveryUnprocessedEventParams{AfterReceivedAt: time.Unix(0, 0), RowLimit: sweepPage}
	for {
		events, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.OpsPaymentEvent, error) {
			return q.EveryUnprocessedEvent(ctx, after)
		})
		if err != nil || len(events) == 0 {
			return err
		}
		for _, e := range events {
			after.AfterReceivedAt, after.AfterProvider, after.AfterEventID = e.ReceivedAt, e.Provider, e.EventID
			if err := s.sweepEvent(ctx, e, r); err != nil { // one that fails holds up no other
				s.db.Logger.ErrorContext(ctx, "cannot sweep", slog.String("event", e.EventID), slog.Any("error", err))
				r.Waiting++
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
}

// sweepEvent locks the order or invoice first, as a delivery does.
func (s *Service) sweepEvent(ctx context.Context, e *sqlc.OpsPaymentEvent, r *Reconciled) error {
	about, err := s.referred(ctx, e.Reference)
	if err != nil {
		return err
	}
	if about.tenant == nil || e.Provider != s.provider.Name() {
		r.Waiting++
		return nil
	}
	_, err = txn.Run(ctx, s.db, txn.Write[struct{}]{
		Apply: func(ctx context.Context, tx txn.Tx) (none struct{}, err error) {
			row, err := tx.EveryPaymentEvent(ctx, sqlc.EveryPaymentEventParams{Provider: e.Provider, EventID: e.EventID})
			if err != nil || row.ProcessedAt != nil {
				return none, err
			}
			return none, s.applyTo(ctx, tx, about, row)
		},
		Find: func(context.Context, *sqlc.Queries) (txn.Found[struct{}], error) {
			return txn.Found[struct{}]{}, errNoOperation
		},
	})
	if err != nil {
		return err
	}
	now, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) (*sqlc.OpsPaymentEvent, error) {
		return q.EveryPaymentEvent(ctx, sqlc.EveryPaymentEventParams{Provider: e.Provider, EventID: e.EventID})
	})
	switch {
	case err != nil:
		return err
	case now.ProcessedAt == nil:
		r.Waiting++
	default:
		r.Events++
	}
	return nil
}
