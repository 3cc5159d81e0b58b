package ordering

import (
	"context"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// move is a step in an order's life: where it goes, what for, and under which operation. A move to
// where the order stands already changes something else, and is history too.
type move struct {
	to        domain.OrderStatus
	event     string
	detail    *string
	refunded  domain.Cents
	attention *string // why a person has to look at the order; nil: as it was
	clears    bool    // nobody has to any more
	op        domain.Operation
	id        domain.UUID // of the row in the history; zero: any
}

// run makes the move by the guarded update and writes it down.
func (m move) run(ctx context.Context, tx txn.Tx, order *sqlc.Order) (*sqlc.Order, error) {
	from := m.to.Sources()
	if m.to == order.Status {
		from = []domain.OrderStatus{order.Status}
	}
	moved, err := tx.MoveOrder(ctx, sqlc.MoveOrderParams{
		TenantID: order.TenantID, ID: order.ID, ToStatus: m.to, RefundedMinor: m.refunded,
		Attention: m.attention, ClearsAttention: m.clears, MovedAt: tx.Now.Time,
		AllowedStatuses: from, ExpectedUpdatedAt: order.UpdatedAt, NextVersion: order.UpdatedAt.Next(tx.Now.Time),
	})
	if isNoRows(err) {
		return nil, txn.ErrRefused
	}
	if err != nil {
		return nil, err
	}
	if m.id == (domain.UUID{}) {
		m.id = domain.NewID[domain.UUID]()
	}
	_, err = tx.InsertOrderHistory(ctx, sqlc.InsertOrderHistoryParams{
		TenantID: order.TenantID, ID: m.id, OrderID: order.ID, Event: m.event, FromStatus: &order.Status, ToStatus: m.to, Detail: m.detail,
		OperationID: m.op.ID, OperationFingerprint: m.op.Fingerprint, MovedBy: m.op.By, MovedAt: tx.Now.Time,
	})
	return moved, err
}

// transition is a caller's wish to move an order.
type transition struct {
	caller  auth.Caller
	op      domain.Operation
	order   domain.OrderID
	version *domain.Version
	toward  domain.OrderStatus // that the state machine has to let it move to; "" for what any state allows
	// decide says which move it is, or refuses it, on the order as it is now.
	decide func(ctx context.Context, tx txn.Tx, order *sqlc.Order) (move, error)
	// then does what belongs to the move in its transaction, while the order is held.
	then func(ctx context.Context, tx txn.Tx, order *sqlc.Order) error
}

// transit makes a transition. Each run reads the order again: a move that somebody else made
// meanwhile is decided on, not overwritten.
func (s *Service) transit(ctx context.Context, t transition) (outcome, error) {
	id := domain.NewID[domain.UUID]()
	return run(ctx, s.db, txn.Write[*sqlc.Order]{
		Operation: t.op,
		Apply: func(ctx context.Context, tx txn.Tx) (*sqlc.Order, error) {
			order, err := visibleOrder(ctx, tx.Queries, t.caller, t.order)
			if err != nil {
				return nil, err
			}
			if t.toward != "" {
				if err := order.Status.CheckMove(t.toward); err != nil {
					return nil, err
				}
			}
			if err := domain.CheckVersion(t.version, order.UpdatedAt); err != nil {
				return nil, err
			}
			m, err := t.decide(ctx, tx, order)
			if err != nil {
				return nil, err
			}
			m.op, m.id = t.op, id
			if order, err = m.run(ctx, tx, order); err != nil || t.then == nil {
				return order, err
			}
			return order, t.then(ctx, tx, order)
		},
		Find: func(ctx context.Context, q *sqlc.Queries) (found txn.Found[*sqlc.Order], err error) {
			step, err := q.FindOrderMove(ctx, sqlc.FindOrderMoveParams{TenantID: t.caller.TenantID, OperationID: t.op.ID})
			if err != nil {
				return found, err
			}
			order, err := visibleOrder(ctx, q, t.caller, step.OrderID)
			return txn.Found[*sqlc.Order]{Value: order, Fingerprint: step.OperationFingerprint, Own: step.ID == id}, err
		},
	})
}

// visibleOrder reads an order that the caller may know of.
func visibleOrder(ctx context.Context, q *sqlc.Queries, caller auth.Caller, id domain.OrderID) (*sqlc.Order, error) {
	rows, err := q.GetOrders(ctx, sqlc.GetOrdersParams{TenantID: caller.TenantID, Ids: []domain.OrderID{id}})
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 || !caller.Sees(rows[0].CustomerID) {
		return nil, noSuchOrder()
	}
	return rows[0], nil
}

// FulfillOrderInput asks to mark an order as delivered.
type FulfillOrderInput struct {
	OrderID        domain.OrderID  `json:"orderId"`
	Version        *domain.Version `json:"version"`
	IdempotencyKey *string         `json:"-"`
}

// Fulfill moves a paid order on.
func (s *Service) Fulfill(ctx context.Context, caller auth.Caller, in FulfillOrderInput) (outcome, error) {
	op, err := caller.Operation("fulfillOrder", "", in.IdempotencyKey, in)
	if err != nil {
		return outcome{}, err
	}
	return s.transit(ctx, transition{caller: caller, op: op, order: in.OrderID, version: in.Version, toward: domain.OrderFulfilled,
		decide: func(_ context.Context, _ txn.Tx, order *sqlc.Order) (move, error) {
			return move{to: domain.OrderFulfilled, event: "FULFILLED", refunded: order.RefundedMinor}, nil
		}})
}

// CancelOrderInput asks to cancel an order.
type CancelOrderInput struct {
	OrderID        domain.OrderID  `json:"orderId"`
	Version        *domain.Version `json:"version"`
	IdempotencyKey *string         `json:"-"`
}

// Cancel ends an order that is not paid, and gives its stock back. While the outcome of a payment
// is not known it asks the provider first, and refuses as long as that stays unknown.
func (s *Service) Cancel(ctx context.Context, caller auth.Caller, in CancelOrderInput) (outcome, error) {
	op, err := caller.Operation("cancelOrder", "", in.IdempotencyKey, in)
	if err != nil {
		return outcome{}, err
	}
	t := transition{
		caller: caller, op: op, order: in.OrderID, version: in.Version, toward: domain.OrderCancelled,
		decide: decideCancel, then: returnStock,
	}
	out, err := s.transit(ctx, t)
	if asked := (*unknownPayment)(nil); asAttempt(err, &asked) {
		order, err := s.lookUp(ctx, asked.order, asked.attempt, op.By)
		if err != nil {
			return outcome{}, err
		}
		if t.version != nil { // it was right, and what the look-up found may have moved the order
			t.version = &order.UpdatedAt
		}
		return s.transit(ctx, t)
	}
	return out, err
}

// decideCancel refuses while an attempt's outcome is not known.
func decideCancel(ctx context.Context, tx txn.Tx, order *sqlc.Order) (move, error) {
	return move{to: domain.OrderCancelled, event: "CANCELLED", refunded: order.RefundedMinor}, refuseUnknown(ctx, tx, order)
}

// refuseUnknown is PAYMENT_IN_PROGRESS while an attempt's outcome is not known.
func refuseUnknown(ctx context.Context, tx txn.Tx, order *sqlc.Order) error {
	attempts, err := tx.ListPaymentAttempts(ctx, sqlc.ListPaymentAttemptsParams{TenantID: order.TenantID, OrderIds: []domain.OrderID{order.ID}})
	if err != nil {
		return err
	}
	if waiting := (&book{attempts: attempts}).waiting(); waiting != nil {
		return newUnknownPayment(order, waiting)
	}
	return nil
}

// returnStock gives back what the order took, once: while the order is held, and after it has been
// seen that no attempt was opened since the decision.
func returnStock(ctx context.Context, tx txn.Tx, order *sqlc.Order) error {
	if err := refuseUnknown(ctx, tx, order); err != nil {
		return err
	}
	lines, err := tx.ListOrderLines(ctx, sqlc.ListOrderLinesParams{TenantID: order.TenantID, OrderIds: []domain.OrderID{order.ID}})
	if err != nil {
		return err
	}
	for _, line := range lines { // in the order of the products' ids, as they were taken
		if !line.TakesStock {
			continue
		}
		_, err := tx.ReturnStock(ctx, sqlc.ReturnStockParams{TenantID: line.TenantID, ProductID: line.ProductID, Quantity: int64(line.Quantity)})
		if err != nil {
			return err
		}
	}
	return nil
}
