package ordering_test

import (
	"context"
	"sync"
	"sync/atomic"

	"countersign/internal/payment"
)

// provider is the simulated provider with the network between it and the server in the test's hand:
// it counts the calls, and what stands in their way can hold them or lose their answers.
type provider struct {
	*payment.Simulated
	charges, finds, refunds atomic.Int32

	mu       sync.Mutex
	onCharge func(ctx context.Context, c payment.Charge) (payment.Payment, error)
	onFind   func(ctx context.Context, key string) (payment.Payment, error)
	onRefund func(ctx context.Context, r payment.Refund) (string, error)
}

// network puts functions in the way of the calls; nil ones pass through.
func (p *provider) network(
	charge func(ctx context.Context, c payment.Charge) (payment.Payment, error),
	find func(ctx context.Context, key string) (payment.Payment, error),
	refund func(ctx context.Context, r payment.Refund) (string, error),
) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onCharge, p.onFind, p.onRefund = charge, find, refund
}

func (p *provider) Charge(ctx context.Context, c payment.Charge) (payment.Payment, error) {
	p.charges.Add(1)
	p.mu.Lock()
	on := p.onCharge
	p.mu.Unlock()
	if on != nil {
		return on(ctx, c)
	}
	return p.Simulated.Charge(ctx, c)
}

func (p *provider) Find(ctx context.Context, key string) (payment.Payment, error) {
	p.finds.Add(1)
	p.mu.Lock()
	on := p.onFind
	p.mu.Unlock()
	if on != nil {
		return on(ctx, key)
	}
	return p.Simulated.Find(ctx, key)
}

func (p *provider) Refund(ctx context.Context, r payment.Refund) (string, error) {
	p.refunds.Add(1)
	p.mu.Lock()
	on := p.onRefund
	p.mu.Unlock()
	if on != nil {
		return on(ctx, r)
	}
	return p.Simulated.Refund(ctx, r)
}
