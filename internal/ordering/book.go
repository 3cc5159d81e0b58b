package ordering

import (
	"context"

	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// book is an order and everything about its money, read while the order is held: whoever has the
// book open decides what a fact does.
type book struct {
	tx       txn.Tx
	order    *sqlc.Order
	attempts []*sqlc.PaymentAttempt
	captures []*sqlc.Capture
	refunds  []*sqlc.Refund
}

// openBook locks the order and, in later statements, reads what depends on it.
func openBook(ctx context.Context, tx txn.Tx, tenant domain.TenantID, id domain.OrderID) (*book, error) {
	order, err := tx.LockOrder(ctx, sqlc.LockOrderParams{TenantID: tenant, ID: id})
	if isNoRows(err) {
		return nil, noSuchOrder()
	}
	if err != nil {
		return nil, err
	}
	b := &book{tx: tx, order: order}
	return b, b.read(ctx)
}

func noSuchOrder() error {
	return domain.Refuse(domain.CodeNotFound, domain.Input("orderId"), "no such order")
}

func (b *book) read(ctx context.Context) (err error) {
	tenant, ids := b.order.TenantID, []domain.OrderID{b.order.ID}
	if b.attempts, err = b.tx.ListPaymentAttempts(ctx, sqlc.ListPaymentAttemptsParams{TenantID: tenant, OrderIds: ids}); err != nil {
		return err
	}
	if b.captures, err = b.tx.ListCaptures(ctx, sqlc.ListCapturesParams{TenantID: tenant, OrderIds: ids}); err != nil {
		return err
	}
	b.refunds, err = b.tx.ListRefunds(ctx, sqlc.ListRefundsParams{TenantID: tenant, OrderIds: ids})
	return err
}

// standing is what the domain judges a fact by.
func (b *book) standing() domain.Standing {
	s := domain.Standing{
		Status: b.order.Status, Total: b.order.Total(), Refunded: b.order.RefundedMinor,
		Captures: map[string]domain.CaptureState{}, Refunds: map[string]bool{}, Awaited: map[domain.Cents]int{},
	}
	for _, c := range b.captures {
		s.Captures[c.ProviderPaymentID] = c.State
	}
	for _, r := range b.refunds {
		switch {
		case r.ProviderRefundID != nil:
			s.Refunds[*r.ProviderRefundID] = true
		case r.Status == domain.RefundPending:
			s.Awaited[r.AmountMinor]++
		}
	}
	return s
}

// told is a fact as it is told to an order.
type told struct {
	domain.Fact
	attempt domain.AttemptID // that it is about; zero where only the provider's ids say so
	failure string           // why a payment failed
	op      domain.Operation
}

// attempt is the one a fact is about: as it says, or the one of its payment, else the one that
// waits.
func (b *book) attempt(t told) *sqlc.PaymentAttempt {
	for _, a := range b.attempts {
		if a.ID == t.attempt || a.ProviderPaymentID != nil && *a.ProviderPaymentID == t.PaymentID {
			return a
		}
	}
	if t.attempt != (domain.AttemptID{}) {
		return nil
	}
	return b.waiting()
}

// waiting is the attempt whose outcome is not known, if there is one.
func (b *book) waiting() *sqlc.PaymentAttempt {
	for _, a := range b.attempts {
		if a.Status == domain.AttemptPending {
			return a
		}
	}
	return nil
}

// apply does to the order what the domain says that a fact does, and says what that was; kept is
// true if the fact has to wait for another.
func (b *book) apply(ctx context.Context, provider string, t told) (result string, kept bool, err error) {
	f := t.Fact
	j := domain.Judge(b.standing(), f)
	if j.Keep {
		return "", true, nil
	}
	ours, err := b.record(ctx, provider, t, j)
	if err != nil {
		return "", false, err
	}
	if !ours {
		j = domain.Judgement{Flag: "the provider has said the same of another order"}
	}
	m := move{to: b.order.Status, refunded: b.order.RefundedMinor, op: t.op}
	if j.Capture != "" {
		m.event = "REFUND_DUE"
	}
	if j.Flag != "" {
		m.event, m.detail, m.attention = "FLAGGED", &j.Flag, &j.Flag
	}
	if j.Pay {
		m.event, m.to = "PAID", domain.OrderPaid
	}
	if j.FailAttempt {
		ended, err := b.end(ctx, b.attempt(t), domain.AttemptFailed, f.PaymentID, t.failure)
		if err != nil || !ended {
			return "UNCHANGED", false, err
		}
		m.event, m.detail = "PAYMENT_FAILED", &t.failure
	}
	switch j.Refund {
	case domain.RefundOfOrder:
		err = b.refundOrder(ctx, provider, f, &m)
	case domain.RefundOfDue:
		m.event = "REFUND_SETTLED"
		err = b.refundDue(ctx, provider, f)
	}
	if err != nil || m.event == "" {
		return "UNCHANGED", false, err
	}
	b.order, err = m.run(ctx, b.tx, b.order)
	if err != nil {
		return "", false, err
	}
	return m.event, false, b.read(ctx)
}

// record writes down money that was taken, and ends the attempt that took it; ours is false if the
// provider's payment, or its refund, is another order's.
func (b *book) record(ctx context.Context, provider string, t told, j domain.Judgement) (ours bool, err error) {
	switch {
	case j.Capture != "":
		_, err = b.tx.InsertCapture(ctx, sqlc.InsertCaptureParams{
			TenantID: b.order.TenantID, Provider: provider, ProviderPaymentID: t.PaymentID, OrderID: b.order.ID,
			AmountMinor: t.Amount.AmountMinor, Currency: t.Amount.Currency, State: j.Capture, CapturedAt: b.tx.Now.Time, UpdatedAt: b.tx.Now,
		})
		if isNoRows(err) {
			return false, nil
		}
		if err == nil {
			_, err = b.end(ctx, b.attempt(t), domain.AttemptSucceeded, t.PaymentID, "")
		}
	case j.Refund != "": // this order's own are known by now
		_, err = b.tx.FindRefundOfProvider(ctx, sqlc.FindRefundOfProviderParams{
			TenantID: b.order.TenantID, Provider: provider, ProviderRefundID: t.RefundID,
		})
		if isNoRows(err) {
			return true, nil
		}
		return false, err
	}
	return true, err
}

// end ends an attempt that waits.
func (b *book) end(ctx context.Context, a *sqlc.PaymentAttempt, status domain.AttemptStatus, paymentID, failure string) (bool, error) {
	if a == nil || a.Status != domain.AttemptPending {
		return false, nil
	}
	arg := sqlc.EndPaymentAttemptParams{
		TenantID: a.TenantID, ID: a.ID, Status: status, EndedAt: &b.tx.Now.Time, NextVersion: a.UpdatedAt.Next(b.tx.Now.Time),
	}
	if paymentID != "" {
		arg.ProviderPaymentID = &paymentID
	}
	if status == domain.AttemptFailed {
		arg.Failure = &failure
	}
	_, err := b.tx.EndPaymentAttempt(ctx, arg)
	return err == nil, err
}

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
