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
	refunds, err := b.tx.ListRefunds(ctx, sqlc.ListRefundsParams{TenantID: tenant, OrderIds: ids})
	b.refunds = b.refunds[:0]
	for _, row := range refunds {
		b.refunds = append(b.refunds, &row.Refund)
	}
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
		case r.Status == domain.RefundPending && s.Captures[r.ProviderPaymentID] == domain.CaptureApplied:
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
	if j.Capture == domain.CaptureRefundDue {
		m.event = "REFUND_DUE"
		if f.Amount.AmountMinor > 0 {
			m.attention = b.unlessGraver(dueReason)
		}
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
		err = b.refundDue(ctx, provider, f, &m)
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
