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

// charge is an attempt about to be made.
type charge struct {
	tenant  domain.TenantID
	attempt domain.AttemptID
	method  string
	by      string
}

// pay asks the provider for an order's money, outside of any transaction and under a key that comes
// from the attempt's id, and records the answer. What is not answered stays unknown, for the
// provider's webhook or the reconciler to settle. The client's patience has no say in it.
func (s *Service) pay(ctx context.Context, order *sqlc.Order, c charge) *sqlc.Order {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	answer, err := s.provider.Charge(call, payment.Charge{
		Key: c.attempt.String(), Reference: order.ID.String(), Method: c.method, Amount: order.Total(),
	})
	if err != nil {
		s.db.Logger.WarnContext(ctx, "payment outcome unknown", slog.String("order", order.ID.String()), slog.Any("error", err))
		return order
	}
	settled, err := s.settle(context.WithoutCancel(ctx), c, order.ID, answer)
	if err != nil {
		s.db.Logger.WarnContext(ctx, "payment not recorded yet", slog.String("order", order.ID.String()), slog.Any("error", err))
		return order
	}
	return settled
}

// settle records a provider's answer to an attempt, and applies what the inbox holds for the order.
func (s *Service) settle(ctx context.Context, c charge, order domain.OrderID, answer payment.Payment) (*sqlc.Order, error) {
	f := domain.Fact{Kind: domain.FactPaid, PaymentID: answer.ID, Amount: answer.Amount}
	if answer.Declined != "" {
		f.Kind = domain.FactFailed
	}
	return s.record(ctx, c, order, f, answer.Declined)
}

// record tells an order a fact about an attempt, under the order's lock. A fact that is told twice
// changes nothing the second time, whoever tells it.
func (s *Service) record(ctx context.Context, c charge, id domain.OrderID, f domain.Fact, failure string) (*sqlc.Order, error) {
	op, err := factOperation(c.tenant, c.by, c.attempt.String(), f)
	if err != nil {
		return nil, err
	}
	return s.write(ctx, c.tenant, id, op, func(ctx context.Context, b *book) error {
		_, _, err := b.apply(ctx, s.provider.Name(), told{Fact: f, attempt: c.attempt, failure: failure, op: op})
		return err
	})
}

// factOperation names the telling of a fact about an attempt or a refund. Nobody asks for it again
// by key: the order's own state says whether it was told.
func factOperation(tenant domain.TenantID, by, about string, f domain.Fact) (domain.Operation, error) {
	key := about + " " + string(f.Kind)
	op, err := domain.NewOperation(tenant, by, "recordPayment", "", &key, f)
	op.KeyGiven = false
	return op, err
}

// write opens an order's book, does something with it, and then what the inbox holds.
func (s *Service) write(ctx context.Context, tenant domain.TenantID, id domain.OrderID, op domain.Operation, do func(ctx context.Context, b *book) error) (*sqlc.Order, error) {
	out, err := txn.Run(ctx, s.db, txn.Write[*sqlc.Order]{
		Operation: op,
		Apply: func(ctx context.Context, tx txn.Tx) (*sqlc.Order, error) {
			b, err := openBook(ctx, tx, tenant, id)
			if err != nil {
				return nil, err
			}
			if err := do(ctx, b); err != nil {
				return nil, err
			}
			err = b.applyInbox(ctx, s.provider.Name())
			return b.order, err
		},
		Find: func(ctx context.Context, q *sqlc.Queries) (found txn.Found[*sqlc.Order], err error) {
			step, err := q.FindOrderMove(ctx, sqlc.FindOrderMoveParams{TenantID: tenant, OperationID: op.ID})
			if err != nil {
				return found, err
			}
			rows, err := q.GetOrders(ctx, sqlc.GetOrdersParams{TenantID: tenant, Ids: []domain.OrderID{step.OrderID}})
			if err != nil {
				return found, err
			}
			return txn.Found[*sqlc.Order]{Value: rows[0], Fingerprint: step.OperationFingerprint}, nil
		},
	})
	return out.Value, err
}

// unknownPayment is PAYMENT_IN_PROGRESS, with the attempt to ask the provider about.
type unknownPayment struct {
	order   *sqlc.Order
	attempt *sqlc.PaymentAttempt
}

func newUnknownPayment(order *sqlc.Order, attempt *sqlc.PaymentAttempt) error {
	return domain.Refuse(domain.CodePaymentInProgress, domain.Input("orderId"),
		"the outcome of a payment is not known yet: ask again later").Because(&unknownPayment{order: order, attempt: attempt})
}

func (*unknownPayment) Error() string { return "payment outcome unknown" }

func asAttempt(err error, target **unknownPayment) bool { return err != nil && errors.As(err, target) }

// lookUp asks the provider what became of an attempt, records it, and returns the order as it is
// then. An attempt that the provider knows nothing of, and that nobody can be making any more, is
// given up: should it be charged all the same, the capture is a refund due.
func (s *Service) lookUp(ctx context.Context, order *sqlc.Order, attempt *sqlc.PaymentAttempt, by string) (*sqlc.Order, error) {
	if attempt.Provider != s.provider.Name() { // this one cannot say
		return nil, newUnknownPayment(order, attempt)
	}
	c := charge{tenant: order.TenantID, attempt: attempt.ID, method: attempt.Method, by: by}
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	answer, err := s.provider.Find(call, attempt.ID.String())
	switch {
	case err == nil:
		return s.settle(context.WithoutCancel(ctx), c, order.ID, answer)
	case !errors.Is(err, payment.ErrNotFound) || s.atWork(attempt):
		return nil, newUnknownPayment(order, attempt)
	}
	return s.giveUp(context.WithoutCancel(ctx), c, order, attempt)
}

// atWork says whether a call for the attempt may be on its way.
func (s *Service) atWork(attempt *sqlc.PaymentAttempt) bool {
	return s.db.Clock().Sub(attempt.UpdatedAt.Time) < 2*callTimeout
}

// giveUp ends an attempt that the provider knows nothing of, unless somebody has claimed it since it
// was read.
func (s *Service) giveUp(ctx context.Context, c charge, order *sqlc.Order, attempt *sqlc.PaymentAttempt) (*sqlc.Order, error) {
	f, reason := domain.Fact{Kind: domain.FactFailed}, "given up: the provider knows nothing of it"
	op, err := factOperation(c.tenant, c.by, c.attempt.String(), f)
	if err != nil {
		return nil, err
	}
	return s.write(ctx, c.tenant, order.ID, op, func(ctx context.Context, b *book) error {
		now := b.attempt(told{attempt: c.attempt})
		if now.Status == domain.AttemptPending && !now.UpdatedAt.Equal(attempt.UpdatedAt.Time) {
			return newUnknownPayment(order, now)
		}
		if b.order.Status == domain.OrderPending {
			_, _, err := b.apply(ctx, s.provider.Name(), told{Fact: f, attempt: c.attempt, failure: reason, op: op})
			return err
		}
		_, err := b.end(ctx, now, domain.AttemptFailed, "", reason)
		return err
	})
}

// RetryPaymentInput asks for another attempt to pay.
type RetryPaymentInput struct {
	OrderID        domain.OrderID `json:"orderId"`
	PaymentMethod  *string        `json:"paymentMethod"`
	IdempotencyKey *string        `json:"-"`
}

// RetryPayment opens the next attempt of an order whose last one has failed, and makes it.
func (s *Service) RetryPayment(ctx context.Context, caller auth.Caller, in RetryPaymentInput) (outcome, error) {
	op, err := caller.Operation("retryPayment", "", in.IdempotencyKey, in)
	if err != nil {
		return outcome{}, err
	}
	how, err := method(s.provider.DefaultMethod(), in.PaymentMethod)
	if err != nil {
		return outcome{}, err
	}
	attempt := domain.NewID[domain.AttemptID]()
	out, err := s.transit(ctx, transition{caller: caller, op: op, order: in.OrderID, toward: domain.OrderPaid,
		decide: func(ctx context.Context, tx txn.Tx, order *sqlc.Order) (move, error) {
			return move{to: order.Status, event: "PAYMENT_RETRIED", refunded: order.RefundedMinor}, refuseUnknown(ctx, tx, order)
		},
		then: func(ctx context.Context, tx txn.Tx, order *sqlc.Order) error {
			b, err := openBook(ctx, tx, order.TenantID, order.ID) // held already: its version has been moved
			if err != nil {
				return err
			}
			if waiting := b.waiting(); waiting != nil {
				return newUnknownPayment(order, waiting)
			}
			for _, c := range b.captures {
				if c.State == domain.CaptureFlagged && (c.AmountMinor > 0 || b.order.Attention != nil) {
					return domain.Refuse(domain.CodePaymentInProgress, domain.Input("orderId"), "a capture of this order waits for a person")
				}
			}
			_, err = tx.InsertPaymentAttempt(ctx, sqlc.InsertPaymentAttemptParams{
				TenantID: order.TenantID, ID: attempt, OrderID: order.ID, Ordinal: int32(len(b.attempts) + 1), Provider: s.provider.Name(),
				Method: how, CreatedAt: tx.Now.Time, UpdatedAt: tx.Now,
			})
			return err
		}})
	if err != nil || out.Replayed {
		return out, err
	}
	out.Value = s.pay(ctx, out.Value, charge{tenant: caller.TenantID, attempt: attempt, method: how, by: op.By})
	return out, nil
}
