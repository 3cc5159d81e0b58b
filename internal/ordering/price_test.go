package ordering_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"countersign/internal/domain"
	"countersign/internal/ordering"
	"countersign/internal/payment"
	"countersign/sqlc"
)

// A price that changes while an order is placed: before the products are read the order has the new
// one, after it the old one, on its line and in its total.
func TestAPriceThatChangesWhileAnOrderIsPlaced(t *testing.T) {
	t.Parallel()
	for pausedBefore, want := range map[string]domain.Cents{"GetProducts": 12300, "InsertOrder": 10000} {
		t.Run(pausedBefore, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			var changed atomic.Bool
			s.Before(pausedBefore, func(context.Context) {
				if !changed.CompareAndSwap(false, true) { // the change reads products too
					return
				}
				if _, err := s.UpdateProduct(t.Context(), s.caller, ordering.UpdateProductInput{
					ProductID: s.product.ID, Version: s.product.UpdatedAt, UnitPriceMinor: ptr(domain.Cents(12300)),
				}); err != nil {
					t.Errorf("the price was not changed: %v", err)
				}
			})
			order := s.place(t, payment.SimOK)
			lines, err := s.LinesOf(t.Context(), s.caller, []*sqlc.Order{order})
			if err != nil {
				t.Fatal(err)
			}
			if line := lines[0][0]; order.TotalMinor != want || line.UnitPriceMinor != want || line.AmountMinor != want {
				t.Errorf("the total is %d of a line of %d, want %d", order.TotalMinor, line.AmountMinor, want)
			}
		})
	}
}

// Two prices that change together, in one transaction, are never seen half changed: their sum is
// always the same. One change is held open while an order is placed, then hundreds run beside others.
func TestPricesAreOfOneMoment(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	dear := s.newProduct(t, "DEAR", domain.Money{AmountMinor: 20000, Currency: "EUR"}, nil)
	order := func(i int) *sqlc.Order {
		in := s.input(fmt.Sprint(i), payment.SimOK)
		in.Items = append(in.Items, domain.OrderItemInput{ProductID: dear.ID, Quantity: 1})
		out, err := s.Place(t.Context(), s.caller, in)
		if err != nil {
			t.Errorf("order %d: %v", i, err)
			return &sqlc.Order{}
		}
		return out.Value
	}
	conn := s.Owner(t)
	swap := func(between func()) {
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		for _, id := range []domain.ProductID{s.product.ID, dear.ID} {
			if _, err := tx.Exec(t.Context(), "UPDATE products SET unit_price_minor = 30000 - unit_price_minor WHERE id = $1", id); err != nil {
				t.Error(err)
			}
			between()
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Error(err)
		}
	}
	placed := 0
	swap(func() { // waits for nobody
		if got := order(placed).TotalMinor; got != 30000 {
			t.Errorf("the total is %d while a change is open", got)
		}
		placed++
	})
	stop := make(chan struct{})
	wait := meanwhile(func() {
		for {
			select {
			case <-stop:
				return
			default:
				swap(func() {})
			}
		}
	})
	together(4, func(i int) {
		for j := range 20 {
			if got := order(placed + i*20 + j).TotalMinor; got != 30000 {
				t.Errorf("the total is %d", got)
			}
		}
	})
	close(stop)
	wait()
}
