package payment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// The methods of the simulated provider say how a charge goes.
const (
	SimOK               = "sim_ok"                // charged
	SimDeclined         = "sim_declined"          // declined
	SimTimeoutCharged   = "sim_timeout_charged"   // charged, but the first answer never comes
	SimTimeoutUncharged = "sim_timeout_uncharged" // the first call never arrives; a second one charges
	SimErrorThenOK      = "sim_error_then_ok"     // the first call fails; a second one charges
	SimSlow             = "sim_slow"              // charged, after a while
)

// SimMethods are all of them.
var SimMethods = []string{SimOK, SimDeclined, SimTimeoutCharged, SimTimeoutUncharged, SimErrorThenOK, SimSlow}

// Simulated is a provider for trying things out. It behaves like a real one: it keeps what it did,
// across restarts, and does it once per idempotency key. The payment method steers it.
type Simulated struct {
	db      *txn.DB
	slow    time.Duration
	secrets []string
}

// NewSimulated makes the provider. Its state lives in the database, in tables of its own; slow is
// how long SimSlow takes; secrets sign its webhooks.
func NewSimulated(db *txn.DB, slow time.Duration, secrets []string) *Simulated {
	return &Simulated{db, slow, secrets}
}

// Name is "simulated".
func (*Simulated) Name() string { return "simulated" }

// DefaultMethod is SimOK.
func (*Simulated) DefaultMethod() string { return SimOK }

// KeyWindow is a day.
func (*Simulated) KeyWindow() time.Duration { return 24 * time.Hour }

// errTimeout is what a caller sees whose request or answer was lost.
var errTimeout = fmt.Errorf("payment: the provider did not answer: %w", context.DeadlineExceeded)

// Charge charges as the method says, once per key.
func (p *Simulated) Charge(ctx context.Context, c Charge) (Payment, error) {
	first, known := map[string]string{
		SimOK: "CHARGED", SimDeclined: "DECLINED", SimTimeoutCharged: "CHARGED", SimTimeoutUncharged: "NONE",
		SimErrorThenOK: "NONE", SimSlow: "CHARGED",
	}[c.Method]
	if !known {
		return Payment{Declined: "unknown_method"}, nil
	}
	if c.Method == SimSlow {
		select {
		case <-time.After(p.slow):
		case <-ctx.Done():
			return Payment{}, ctx.Err()
		}
	}
	row, err := run(ctx, p.db, func(ctx context.Context, tx txn.Tx) (*sqlc.OpsSimulatedPayment, error) {
		return tx.EverySimulatedCharge(ctx, sqlc.EverySimulatedChargeParams{
			IdempotencyKey: c.Key, PaymentID: "sim_" + domain.NewID[domain.AttemptID]().String()[len("pay_"):], Reference: c.Reference,
			Method: c.Method, AmountMinor: c.Amount.AmountMinor, Currency: c.Amount.Currency, FirstStatus: first, CreatedAt: tx.Now.Time,
		})
	})
	switch {
	case err != nil:
		return Payment{}, err
	case row.Reference != c.Reference || row.AmountMinor != c.Amount.AmountMinor || row.Currency != c.Amount.Currency:
		return Payment{}, errors.New("payment: the idempotency key was used for another charge")
	case row.Calls == 1 && (c.Method == SimTimeoutCharged || c.Method == SimTimeoutUncharged):
		return Payment{}, errTimeout
	case row.Calls == 1 && c.Method == SimErrorThenOK:
		return Payment{}, errors.New("payment: the provider answered 503")
	}
	return answer(row)
}

// Find looks a charge up by its key.
func (p *Simulated) Find(ctx context.Context, key string) (Payment, error) {
	row, err := txn.Read(ctx, p.db, func(ctx context.Context, q *sqlc.Queries) (*sqlc.OpsSimulatedPayment, error) {
		return q.EverySimulatedPayment(ctx, sqlc.EverySimulatedPaymentParams{IdempotencyKey: key})
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return Payment{}, ErrNotFound
	}
	if err != nil {
		return Payment{}, err
	}
	return answer(row)
}

func answer(row *sqlc.OpsSimulatedPayment) (Payment, error) {
	switch row.Status {
	case "NONE":
		return Payment{}, ErrNotFound
	case "DECLINED":
		return Payment{ID: row.PaymentID, Declined: "card_declined"}, nil
	}
	return Payment{ID: row.PaymentID, Amount: domain.Money{AmountMinor: row.AmountMinor, Currency: row.Currency}}, nil
}

// Refund gives back at most what was charged, once per key.
func (p *Simulated) Refund(ctx context.Context, r Refund) (string, error) {
	row, err := run(ctx, p.db, func(ctx context.Context, tx txn.Tx) (*sqlc.OpsSimulatedRefund, error) {
		// The payment's row is locked, so that two refunds cannot both take the rest of it.
		paid, err := tx.EverySimulatedPaymentByID(ctx, sqlc.EverySimulatedPaymentByIDParams{PaymentID: r.PaymentID})
		if errors.Is(err, pgx.ErrNoRows) {
			return nil, ErrRefused
		}
		if err != nil {
			return nil, err
		}
		if paid.Status != "CHARGED" || paid.Currency != r.Amount.Currency || r.Amount.AmountMinor < 1 {
			return nil, ErrRefused
		}
		row, err := tx.EverySimulatedRefund(ctx, sqlc.EverySimulatedRefundParams{
			IdempotencyKey: r.Key, RefundID: "sim_" + domain.NewID[domain.RefundID]().String()[len("ref_"):], PaymentID: r.PaymentID,
			AmountMinor: r.Amount.AmountMinor, CreatedAt: tx.Now.Time,
		})
		if err != nil {
			return nil, err
		}
		if row.PaymentID != r.PaymentID || row.AmountMinor != r.Amount.AmountMinor {
			return nil, errors.New("payment: the idempotency key was used for another refund")
		}
		total, err := tx.EverySimulatedRefundOfPayment(ctx, sqlc.EverySimulatedRefundOfPaymentParams{PaymentID: r.PaymentID})
		if err == nil && total > int64(paid.AmountMinor) {
			err = ErrRefused
		}
		return row, err
	})
	if err != nil {
		return "", err
	}
	return row.RefundID, nil
}

// run writes to the provider's own tables. They have no operations: what is repeated under a key is
// the same row.
func run[T any](ctx context.Context, db *txn.DB, apply func(ctx context.Context, tx txn.Tx) (T, error)) (T, error) {
	out, err := txn.Run(ctx, db, txn.Write[T]{
		Apply: apply,
		Find:  func(context.Context, *sqlc.Queries) (txn.Found[T], error) { return txn.Found[T]{}, pgx.ErrNoRows },
	})
	return out.Value, err
}
