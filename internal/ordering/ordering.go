// Package ordering says what happens to products and orders: placing, paying, fulfilling,
// cancelling and refunding, what a provider's webhooks do, and how what is unknown is settled.
package ordering

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/paging"
	"countersign/internal/payment"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// callTimeout bounds one call of the provider.
const callTimeout = 30 * time.Second

// Service holds the use cases.
type Service struct {
	db       *txn.DB
	provider payment.Provider
	invoices InvoiceFacts
}

// New makes a Service of a database and the provider that its orders are paid through.
func New(db *txn.DB, provider payment.Provider) *Service { return &Service{db: db, provider: provider} }

// InvoiceFacts does to an invoice what a provider says of its payment, in the transaction that takes
// the event in, and says what that was.
type InvoiceFacts func(ctx context.Context, tx txn.Tx, tenant domain.TenantID, id domain.InvoiceID, f domain.Fact, op domain.Operation) (result string, err error)

// WithInvoices hands webhooks about invoices on; without it they are kept.
func (s *Service) WithInvoices(facts InvoiceFacts) *Service {
	s.invoices = facts
	return s
}

type outcome = txn.Outcome[*sqlc.Order]

// run runs a write. An unknown outcome is not answered before the operation has been looked up once more:
// the run whose answer was lost may have done it meanwhile.
func run[T any](ctx context.Context, db *txn.DB, w txn.Write[T]) (txn.Outcome[T], error) {
	out, err := txn.Run(ctx, db, w)
	if unknown := (*domain.OutcomeUnknownError)(nil); !errors.As(err, &unknown) {
		return out, err
	}
	found, findErr := txn.Read(context.WithoutCancel(ctx), db, w.Find)
	switch {
	case findErr != nil:
		return out, err
	case !found.Fingerprint.Equal(w.Fingerprint):
		return out, w.KeyReused()
	}
	return txn.Outcome[T]{Value: found.Value, Replayed: !found.Own, Key: w.Key, KeyMade: !w.KeyGiven}, nil
}

// OrdersByID answers each id at its place, nil where there is none that the caller may know of.
func (s *Service) OrdersByID(ctx context.Context, caller auth.Caller, ids []domain.OrderID) ([]*sqlc.Order, error) {
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Order, error) {
		return q.GetOrders(ctx, sqlc.GetOrdersParams{TenantID: caller.TenantID, Ids: ids})
	})
	return paging.InOrder(ids, rows, func(o *sqlc.Order) (domain.OrderID, bool) { return o.ID, caller.Sees(o.CustomerID) }), err
}

// OrderFilter narrows a list of orders; what is nil does not.
type OrderFilter struct {
	CustomerID *domain.CustomerID
	Status     *domain.OrderStatus
}

// ListOrders returns a page of orders, in order of creation.
func (s *Service) ListOrders(ctx context.Context, caller auth.Caller, f OrderFilter, p paging.Request[domain.OrderID]) (paging.Page[*sqlc.Order], error) {
	customer, ok := caller.Narrow(f.CustomerID)
	if !ok {
		return paging.Page[*sqlc.Order]{}, nil
	}
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Order, error) {
		anyone := customer == domain.CustomerID{}
		switch {
		case anyone && f.Status == nil:
			arg := sqlc.ListOrdersParams{TenantID: caller.TenantID, AfterID: p.After, BeforeID: p.Before, RowLimit: p.Limit()}
			if p.Backward {
				return q.ListOrdersBackward(ctx, sqlc.ListOrdersBackwardParams(arg))
			}
			return q.ListOrders(ctx, arg)
		case anyone:
			arg := sqlc.ListOrdersOfStatusParams{TenantID: caller.TenantID, Status: string(*f.Status), AfterID: domain.UUID(p.After), BeforeID: domain.UUID(p.Before), RowLimit: p.Limit()}
			if p.Backward {
				return q.ListOrdersOfStatusBackward(ctx, sqlc.ListOrdersOfStatusBackwardParams(arg))
			}
			return q.ListOrdersOfStatus(ctx, arg)
		case f.Status == nil:
			return ordersOf(ctx, q, caller, []domain.CustomerID{customer}, p)
		}
		arg := sqlc.ListOrdersOfCustomerOfStatusParams{
			TenantID: caller.TenantID, CustomerID: customer, Status: string(*f.Status), AfterID: domain.UUID(p.After), BeforeID: domain.UUID(p.Before), RowLimit: p.Limit(),
		}
		if p.Backward {
			return q.ListOrdersOfCustomerOfStatusBackward(ctx, sqlc.ListOrdersOfCustomerOfStatusBackwardParams(arg))
		}
		return q.ListOrdersOfCustomerOfStatus(ctx, arg)
	})
	return paging.Cut(p, rows), err
}

// OrdersOf answers each customer's page of orders at its place, in order of creation.
func (s *Service) OrdersOf(ctx context.Context, caller auth.Caller, customers []*sqlc.Customer, p paging.Request[domain.OrderID]) ([]paging.Page[*sqlc.Order], error) {
	ids := paging.IDs(customers, func(c *sqlc.Customer) domain.CustomerID { return c.ID })
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]*sqlc.Order, error) {
		return ordersOf(ctx, q, caller, ids, p)
	})
	return paging.CutEach(p, paging.Group(ids, rows, func(o *sqlc.Order) domain.CustomerID { return o.CustomerID })), err
}

func ordersOf(ctx context.Context, q *sqlc.Queries, caller auth.Caller, customers []domain.CustomerID, p paging.Request[domain.OrderID]) ([]*sqlc.Order, error) {
	arg := sqlc.ListOrdersOfCustomersParams{TenantID: caller.TenantID, CustomerIds: customers, AfterID: p.After, BeforeID: p.Before, RowLimit: p.Limit()}
	if p.Backward {
		return q.ListOrdersOfCustomersBackward(ctx, sqlc.ListOrdersOfCustomersBackwardParams(arg))
	}
	return q.ListOrdersOfCustomers(ctx, arg)
}

// Line is a line of an order with the order's currency.
type Line struct {
	*sqlc.OrderLine
	Currency domain.CurrencyCode
}

// UnitPrice is what one cost when the order was placed.
func (l *Line) UnitPrice() domain.Money {
	return domain.Money{AmountMinor: l.UnitPriceMinor, Currency: l.Currency}
}

// Amount is quantity × unit price.
func (l *Line) Amount() domain.Money {
	return domain.Money{AmountMinor: l.AmountMinor, Currency: l.Currency}
}

// LinesOf answers each order's lines at its place.
func (s *Service) LinesOf(ctx context.Context, caller auth.Caller, orders []*sqlc.Order) ([][]*Line, error) {
	rows, err := ofOrders(ctx, s, orders, func(ctx context.Context, q *sqlc.Queries, ids []domain.OrderID) ([]*sqlc.OrderLine, error) {
		return q.ListOrderLines(ctx, sqlc.ListOrderLinesParams{TenantID: caller.TenantID, OrderIds: ids})
	}, func(row *sqlc.OrderLine) domain.OrderID { return row.OrderID })
	lines := make([][]*Line, len(rows))
	for i, of := range rows {
		for _, row := range of {
			lines[i] = append(lines[i], &Line{row, orders[i].Currency})
		}
	}
	return lines, err
}

// AttemptsOf answers each order's payment attempts at its place, oldest first.
func (s *Service) AttemptsOf(ctx context.Context, caller auth.Caller, orders []*sqlc.Order) ([][]*sqlc.PaymentAttempt, error) {
	return ofOrders(ctx, s, orders, func(ctx context.Context, q *sqlc.Queries, ids []domain.OrderID) ([]*sqlc.PaymentAttempt, error) {
		return q.ListPaymentAttempts(ctx, sqlc.ListPaymentAttemptsParams{TenantID: caller.TenantID, OrderIds: ids})
	}, func(row *sqlc.PaymentAttempt) domain.OrderID { return row.OrderID })
}

// CapturesOf answers each order's captures at its place, oldest first.
func (s *Service) CapturesOf(ctx context.Context, caller auth.Caller, orders []*sqlc.Order) ([][]*sqlc.Capture, error) {
	return ofOrders(ctx, s, orders, func(ctx context.Context, q *sqlc.Queries, ids []domain.OrderID) ([]*sqlc.Capture, error) {
		return q.ListCaptures(ctx, sqlc.ListCapturesParams{TenantID: caller.TenantID, OrderIds: ids})
	}, func(row *sqlc.Capture) domain.OrderID { return row.OrderID })
}

// RefundsOf answers each order's refunds at its place, oldest first.
func (s *Service) RefundsOf(ctx context.Context, caller auth.Caller, orders []*sqlc.Order) ([][]*Refund, error) {
	rows, err := ofOrders(ctx, s, orders, func(ctx context.Context, q *sqlc.Queries, ids []domain.OrderID) ([]*sqlc.ListRefundsRow, error) {
		return q.ListRefunds(ctx, sqlc.ListRefundsParams{TenantID: caller.TenantID, OrderIds: ids})
	}, func(row *sqlc.ListRefundsRow) domain.OrderID { return row.Refund.OrderID })
	refunds := make([][]*Refund, len(rows))
	for i, of := range rows {
		for _, row := range of {
			refunds[i] = append(refunds[i], &Refund{&row.Refund, row.Currency})
		}
	}
	return refunds, err
}

// Refund is a refund with the currency of the payment that it gives back.
type Refund struct {
	*sqlc.Refund
	Currency domain.CurrencyCode
}

// Amount is what is given back.
func (r *Refund) Amount() domain.Money {
	return domain.Money{AmountMinor: r.AmountMinor, Currency: r.Currency}
}

// HistoryOf answers each order's history at its place, oldest first. Notes of the staff are not for
// customers: of the details they see why a payment failed.
func (s *Service) HistoryOf(ctx context.Context, caller auth.Caller, orders []*sqlc.Order) ([][]*sqlc.OrderHistory, error) {
	history, err := ofOrders(ctx, s, orders, func(ctx context.Context, q *sqlc.Queries, ids []domain.OrderID) ([]*sqlc.OrderHistory, error) {
		return q.ListOrderHistory(ctx, sqlc.ListOrderHistoryParams{TenantID: caller.TenantID, OrderIds: ids})
	}, func(row *sqlc.OrderHistory) domain.OrderID { return row.OrderID })
	for _, steps := range history {
		for _, step := range steps {
			if caller.Role == domain.RoleCustomer && step.Event != "PAYMENT_FAILED" {
				step.Detail = nil
			}
		}
	}
	return history, err
}

// ofOrders reads what belongs to orders in one statement, and answers each order's at its place.
func ofOrders[Row any](ctx context.Context, s *Service, orders []*sqlc.Order, list func(context.Context, *sqlc.Queries, []domain.OrderID) ([]Row, error), of func(Row) domain.OrderID) ([][]Row, error) {
	ids := paging.IDs(orders, func(o *sqlc.Order) domain.OrderID { return o.ID })
	rows, err := txn.Read(ctx, s.db, func(ctx context.Context, q *sqlc.Queries) ([]Row, error) { return list(ctx, q, ids) })
	return paging.Group(ids, rows, of), err
}

func isNoRows(err error) bool { return errors.Is(err, pgx.ErrNoRows) }
