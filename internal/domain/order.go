package domain

import (
	"fmt"
	"slices"
)

// OrderStatus is where an order stands.
type OrderStatus string

// An order waits for its payment, is paid and then fulfilled, and may be refunded; or it is
// cancelled while it waits.
const (
	OrderPending   OrderStatus = "PENDING"
	OrderPaid      OrderStatus = "PAID"
	OrderFulfilled OrderStatus = "FULFILLED"
	OrderCancelled OrderStatus = "CANCELLED"
	OrderRefunded  OrderStatus = "REFUNDED"
)

// OrderStatuses are all of them.
var OrderStatuses = []OrderStatus{OrderPending, OrderPaid, OrderFulfilled, OrderCancelled, OrderRefunded}

// sources is the state machine: from where each status may be reached. Nothing leaves CANCELLED or
// REFUNDED. docs/orders.md draws it.
var sources = map[OrderStatus][]OrderStatus{
	OrderPaid:      {OrderPending},
	OrderCancelled: {OrderPending},
	OrderFulfilled: {OrderPaid},
	OrderRefunded:  {OrderPaid, OrderFulfilled},
}

// Sources are the statuses from which an order may move to this one: the status list of the guard
// of that move.
func (s OrderStatus) Sources() []OrderStatus { return sources[s] }

// CheckMove refuses a move that the state machine does not have, naming both states.
func (s OrderStatus) CheckMove(to OrderStatus) error {
	if slices.Contains(to.Sources(), s) {
		return nil
	}
	return &IllegalTransitionError{
		Refusal: *Refuse(CodeIllegalTransition, Input("orderId"), "an order that is %s cannot become %s", s, to),
		From:    s, To: to,
	}
}

// IllegalTransitionError refuses a move that an order's state does not allow.
type IllegalTransitionError struct {
	Refusal
	From, To OrderStatus
}

// PriceChangedError refuses an order whose total is not what the buyer was shown.
type PriceChangedError struct {
	Refusal
	CurrentTotal Money
}

// CheckVersion refuses a write that was decided on an older state of its row.
func CheckVersion(given *Version, current Version) error {
	if given != nil && !given.Equal(current.Time) {
		return Refuse(CodeStaleVersion, Input("version"), "the row has changed since this version: read it again")
	}
	return nil
}

// OrderItemInput is a product and how many of it.
type OrderItemInput struct {
	ProductID ProductID `json:"productId"`
	Quantity  int32     `json:"quantity"`
}

// MaxOrderItems bounds an order.
const MaxOrderItems = 100

// MergeItems checks the items and brings them into their canonical form: one per product, in the
// order of the products' ids. The same cart in another order is the same cart.
func MergeItems(items []OrderItemInput) ([]OrderItemInput, error) {
	if len(items) == 0 || len(items) > MaxOrderItems {
		return nil, BadInputAt(Input("items"), "an order has 1 to %d items", MaxOrderItems)
	}
	quantities := map[ProductID]int64{}
	for i, item := range items {
		if item.Quantity < 1 {
			return nil, Refuse(CodeInvalidQuantity, Input("items", fmt.Sprint(i), "quantity"), "a quantity is at least 1")
		}
		quantities[item.ProductID] += int64(item.Quantity)
	}
	merged := make([]OrderItemInput, 0, len(quantities))
	for id, quantity := range quantities {
		if quantity != int64(int32(quantity)) {
			return nil, Refuse(CodeInvalidQuantity, Input("items"), "the quantities of one product sum to more than 2147483647")
		}
		merged = append(merged, OrderItemInput{id, int32(quantity)})
	}
	slices.SortFunc(merged, func(a, b OrderItemInput) int { return slices.Compare(a.ProductID[:], b.ProductID[:]) })
	return merged, nil
}
