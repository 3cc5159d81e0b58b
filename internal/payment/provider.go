// Package payment speaks with payment providers.
package payment

import (
	"context"
	"errors"
	"net/http"
	"time"

	"countersign/internal/domain"
)

// Provider charges and refunds. A call that fails is of unknown outcome: it may have taken effect.
// Only an answer is known, and a decline is an answer.
type Provider interface {
	// Name is the provider's, in rows and in the address of its webhooks.
	Name() string
	// DefaultMethod is how to pay if the buyer does not say.
	DefaultMethod() string
	// KeyWindow is how long the provider knows an idempotency key.
	KeyWindow() time.Duration
	// Charge takes money, once per key.
	Charge(ctx context.Context, c Charge) (Payment, error)
	// Find looks up what became of a charge; ErrNotFound if the provider knows nothing of it.
	Find(ctx context.Context, key string) (Payment, error)
	// Refund gives money back, once per key; ErrRefused if it will not.
	Refund(ctx context.Context, r Refund) (refundID string, err error)
	// Event verifies a webhook and reads it; ErrBadWebhook if it is not the provider's, or too old.
	Event(header http.Header, body []byte) (Event, error)
}

var (
	// ErrNotFound says that the provider knows nothing of a charge.
	ErrNotFound = errors.New("payment: the provider knows nothing of it")
	// ErrRefused says that the provider refuses for good.
	ErrRefused = errors.New("payment: the provider refuses")
	// ErrBadWebhook says that a webhook is not to be trusted.
	ErrBadWebhook = errors.New("payment: not a webhook of the provider")
)

// Charge asks for money.
type Charge struct {
	Key       string // the provider's idempotency key
	Reference string // what it is for: an order's printed id
	Method    string
	Amount    domain.Money
}

// Payment is a provider's answer to a charge: captured, or declined with a reason.
type Payment struct {
	ID       string
	Amount   domain.Money
	Declined string // "" if captured
}

// Refund asks for money to be given back.
type Refund struct {
	Key       string
	PaymentID string
	Amount    domain.Money
}

// Event is what a webhook says.
type Event struct {
	ID        string
	Reference string
	Fact      domain.Fact
}
