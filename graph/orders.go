package graph

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"countersign/graph/model"
	"countersign/internal/domain"
	"countersign/internal/ordering"
	"countersign/internal/paging"
	"countersign/sqlc"
)

var (
	productKeys = idKeys[domain.ProductID]("product")
	orderKeys   = idKeys[domain.OrderID]("order")
)

// eventKeys are the keys of the inbox, in order of arrival.
var eventKeys = keys[ordering.EventKey]{
	list:    "event",
	lowest:  ordering.EventKey{ReceivedAt: time.Unix(0, 0)},
	highest: ordering.EventKey{ReceivedAt: time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC)},
	write: func(k ordering.EventKey) []byte {
		raw, _ := json.Marshal(k) // times and strings
		return raw
	},
	read: func(raw []byte) (k ordering.EventKey, ok bool) {
		err := json.Unmarshal(raw, &k)
		if _, bad := domain.ParseText(k.Provider + k.EventID); err != nil || bad != nil || k.EventID == "" {
			return k, false
		}
		again, err := json.Marshal(k)
		return k, err == nil && bytes.Equal(raw, again) // as it was written, and no other way
	},
}

func (r *Resolver) products(ctx context.Context, f *ordering.ProductFilter, w window) (*model.ProductConnection, error) {
	req, err := request(productKeys, w)
	if err != nil {
		return nil, err
	}
	if f == nil {
		f = &ordering.ProductFilter{}
	}
	page, err := r.Ordering.ListProducts(ctx, caller(ctx), *f, req)
	rows, info := edges(ctx, productKeys, w, page, func(p *sqlc.Product) domain.ProductID { return p.ID },
		func(cursor string, p *sqlc.Product) *model.ProductEdge {
			return &model.ProductEdge{Cursor: cursor, Node: p}
		})
	return &model.ProductConnection{Edges: rows, Nodes: page.Rows, PageInfo: info}, err
}

func (r *Resolver) orders(ctx context.Context, f *ordering.OrderFilter, w window) (*model.OrderConnection, error) {
	req, err := request(orderKeys, w)
	if err != nil {
		return nil, err
	}
	if f == nil {
		f = &ordering.OrderFilter{}
	}
	page, err := r.Ordering.ListOrders(ctx, caller(ctx), *f, req)
	return orderConnection(ctx, w, page), err
}

// ordersToLookAt are those that a person has to look at, in order of creation.
func (r *Resolver) ordersToLookAt(ctx context.Context, w window) (*model.OrderConnection, error) {
	req, err := request(orderKeys, w)
	if err != nil {
		return nil, err
	}
	page, err := r.Ordering.ListToLookAt(ctx, caller(ctx), req)
	return orderConnection(ctx, w, page), err
}

// ordersOf are the customers' lists, in order of creation.
func (r *Resolver) ordersOf(ctx context.Context, customers []*sqlc.Customer, w window) ([]*model.OrderConnection, error) {
	return pagesOf(ctx, customers, orderKeys, w, r.Ordering.OrdersOf, func(page paging.Page[*sqlc.Order]) *model.OrderConnection {
		return orderConnection(ctx, w, page)
	})
}

func orderConnection(ctx context.Context, w window, page paging.Page[*sqlc.Order]) *model.OrderConnection {
	rows, info := edges(ctx, orderKeys, w, page, func(o *sqlc.Order) domain.OrderID { return o.ID },
		func(cursor string, o *sqlc.Order) *model.OrderEdge { return &model.OrderEdge{Cursor: cursor, Node: o} })
	return &model.OrderConnection{Edges: rows, Nodes: page.Rows, PageInfo: info}
}

func (r *Resolver) paymentEvents(ctx context.Context, w window) (*model.PaymentEventConnection, error) {
	req, err := request(eventKeys, w)
	if err != nil {
		return nil, err
	}
	page, err := r.Ordering.ListEvents(ctx, caller(ctx), req)
	rows, info := edges(ctx, eventKeys, w, page,
		func(e *sqlc.OpsPaymentEvent) ordering.EventKey {
			return ordering.EventKey{ReceivedAt: e.ReceivedAt, Provider: e.Provider, EventID: e.EventID}
		},
		func(cursor string, e *sqlc.OpsPaymentEvent) *model.PaymentEventEdge {
			return &model.PaymentEventEdge{Cursor: cursor, Node: e}
		})
	return &model.PaymentEventConnection{Edges: rows, Nodes: page.Rows, PageInfo: info}, err
}
