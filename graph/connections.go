package graph

import (
	"context"

	"countersign/graph/model"
	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/paging"
	"countersign/sqlc"
)

var (
	customerKeys = idKeys[domain.CustomerID]("customer")
	seriesKeys   = idKeys[domain.SeriesID]("series")
	invoiceKeys  = idKeys[domain.InvoiceID]("invoice")
)

func (r *Resolver) customers(ctx context.Context, w window) (*model.CustomerConnection, error) {
	req, err := request(customerKeys, w)
	if err != nil {
		return nil, err
	}
	page, err := r.Invoicing.ListCustomers(ctx, caller(ctx), req)
	rows, info := edges(ctx, customerKeys, w, page, func(c *sqlc.Customer) domain.CustomerID { return c.ID },
		func(cursor string, c *sqlc.Customer) *model.CustomerEdge {
			return &model.CustomerEdge{Cursor: cursor, Node: c}
		})
	return &model.CustomerConnection{Edges: rows, Nodes: page.Rows, PageInfo: info}, err
}

func (r *Resolver) seriesList(ctx context.Context, w window) (*model.InvoiceSeriesConnection, error) {
	req, err := request(seriesKeys, w)
	if err != nil {
		return nil, err
	}
	page, err := r.Invoicing.ListSeries(ctx, caller(ctx), req)
	rows, info := edges(ctx, seriesKeys, w, page, func(s *sqlc.InvoiceSeries) domain.SeriesID { return s.ID },
		func(cursor string, s *sqlc.InvoiceSeries) *model.InvoiceSeriesEdge {
			return &model.InvoiceSeriesEdge{Cursor: cursor, Node: s}
		})
	return &model.InvoiceSeriesConnection{Edges: rows, Nodes: page.Rows, PageInfo: info}, err
}

// invoices is a list in order of creation.
func (r *Resolver) invoices(ctx context.Context, f invoicing.InvoiceFilter, w window) (*model.InvoiceConnection, error) {
	req, err := request(invoiceKeys, w)
	if err != nil {
		return nil, err
	}
	page, err := r.Invoicing.ListInvoices(ctx, caller(ctx), f, req)
	return invoiceConnection(ctx, invoiceKeys, w, page, invoiceID), err
}

// invoicesOf are the customers' lists, in order of creation.
func (r *Resolver) invoicesOf(ctx context.Context, customers []*sqlc.Customer, w window) ([]*model.InvoiceConnection, error) {
	return pagesOf(ctx, customers, invoiceKeys, w, r.Invoicing.InvoicesOf, func(page invoicing.InvoicePage) *model.InvoiceConnection {
		return invoiceConnection(ctx, invoiceKeys, w, page, invoiceID)
	})
}

// lines are read once for all that is told of them.
func (r *Resolver) lines(ctx context.Context, objs []*sqlc.Invoice) ([][]*invoicing.Line, error) {
	return shareAs(ctx, "lines", objs, func(ctx context.Context, objs []*sqlc.Invoice) ([][]*invoicing.Line, error) {
		return r.Invoicing.LinesOf(ctx, caller(ctx), objs)
	})
}

// linked are the invoices that invoices refer to, nil where one refers to none.
func (r *Resolver) linked(ctx context.Context, objs []*sqlc.Invoice, to func(*sqlc.Invoice) *domain.InvoiceID) ([]*sqlc.Invoice, error) {
	return together(ctx, objs, func(ctx context.Context, objs []*sqlc.Invoice) ([]*sqlc.Invoice, error) {
		ids := make([]domain.InvoiceID, len(objs))
		for i, obj := range objs {
			if id := to(obj); id != nil {
				ids[i] = *id
			}
		}
		return r.Invoicing.InvoicesByID(ctx, caller(ctx), ids)
	})
}

// numbersOf are the series' lists, in the order of their numbers.
func (r *Resolver) numbersOf(ctx context.Context, series []*sqlc.InvoiceSeries, w window) ([]*model.InvoiceConnection, error) {
	return pagesOf(ctx, series, numberKeys, w, r.Invoicing.NumbersOf, func(page invoicing.InvoicePage) *model.InvoiceConnection {
		return invoiceConnection(ctx, numberKeys, w, page, func(i *sqlc.Invoice) invoicing.NumberKey {
			return invoicing.NumberKey{PeriodStart: *i.PeriodStart, Sequence: *i.Sequence}
		})
	})
}

// periodsOf are the series' lists of the periods that they have left.
func (r *Resolver) periodsOf(ctx context.Context, series []*sqlc.InvoiceSeries, w window) ([]*model.SeriesPeriodConnection, error) {
	return pagesOf(ctx, series, periodKeys, w, r.Invoicing.PeriodsOf, func(page paging.Page[*sqlc.SeriesPeriod]) *model.SeriesPeriodConnection {
		rows, info := edges(ctx, periodKeys, w, page, func(p *sqlc.SeriesPeriod) domain.Date { return p.PeriodStart },
			func(cursor string, p *sqlc.SeriesPeriod) *model.SeriesPeriodEdge {
				return &model.SeriesPeriodEdge{Cursor: cursor, Node: p}
			})
		return &model.SeriesPeriodConnection{Edges: rows, Nodes: page.Rows, PageInfo: info}
	})
}

// changesOf are the series' lists of the changes that were made of them.
func (r *Resolver) changesOf(ctx context.Context, series []*sqlc.InvoiceSeries, w window) ([]*model.SeriesChangeRecordConnection, error) {
	return pagesOf(ctx, series, changeKeys, w, r.Invoicing.ChangesOf, func(page paging.Page[*sqlc.SeriesChange]) *model.SeriesChangeRecordConnection {
		rows, info := edges(ctx, changeKeys, w, page, func(c *sqlc.SeriesChange) int32 { return c.Position },
			func(cursor string, c *sqlc.SeriesChange) *model.SeriesChangeRecordEdge {
				return &model.SeriesChangeRecordEdge{Cursor: cursor, Node: c}
			})
		return &model.SeriesChangeRecordConnection{Edges: rows, Nodes: page.Rows, PageInfo: info}
	})
}

func invoiceID(i *sqlc.Invoice) domain.InvoiceID { return i.ID }

func invoiceConnection[K any](ctx context.Context, k keys[K], w window, page invoicing.InvoicePage, key func(*sqlc.Invoice) K) *model.InvoiceConnection {
	rows, info := edges(ctx, k, w, page, key, func(cursor string, i *sqlc.Invoice) *model.InvoiceEdge {
		return &model.InvoiceEdge{Cursor: cursor, Node: i}
	})
	return &model.InvoiceConnection{Edges: rows, Nodes: page.Rows, PageInfo: info}
}
