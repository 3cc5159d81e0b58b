package graph

import (
	"context"
	"encoding/binary"
	"errors"
	"math"

	"countersign/graph/model"
	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/paging"
	"countersign/sqlc"
)

// ledgerKeys are the keys of a ledger: the first number of each line.
var ledgerKeys = keys[int64]{
	list: "ledger", lowest: 0, highest: math.MaxInt64,
	write: func(number int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(number)) },
	read: func(raw []byte) (number int64, ok bool) {
		if len(raw) != 8 {
			return 0, false
		}
		number = int64(binary.BigEndian.Uint64(raw))
		return number, number >= 1
	},
}

// audit is a series' audit; nil if there is no such series.
func (r *Resolver) audit(ctx context.Context, seriesID string, day *domain.Date) (*invoicing.Audit, error) {
	id, err := domain.ParseID[domain.SeriesID](seriesID)
	if err != nil {
		return nil, about("seriesId", err)
	}
	a, err := r.Invoicing.Audit(ctx, caller(ctx), id, day, nil)
	if isNotFound(err) {
		return nil, nil
	}
	return a, err
}

// ledger is a page of a series' ledger.
func (r *Resolver) ledger(ctx context.Context, seriesID string, day *domain.Date, w window) (*model.LedgerLineConnection, error) {
	id, err := domain.ParseID[domain.SeriesID](seriesID)
	if err != nil {
		return nil, about("seriesId", err)
	}
	req, err := request(ledgerKeys, w)
	if err != nil {
		return nil, err
	}
	page, err := r.Invoicing.ListLedger(ctx, caller(ctx), id, day, req)
	if isNotFound(err) {
		page, err = paging.Page[*invoicing.LedgerLine]{}, nil
	}
	rows, info := edges(ctx, ledgerKeys, w, page, func(l *invoicing.LedgerLine) int64 { return l.NumberRange.First },
		func(cursor string, l *invoicing.LedgerLine) *model.LedgerLineEdge {
			return &model.LedgerLineEdge{Cursor: cursor, Node: l}
		})
	return &model.LedgerLineConnection{Edges: rows, Nodes: page.Rows, PageInfo: info}, err
}

// invoicesOfLines answers each line's invoice at its place, nil where it has none.
func (r *Resolver) invoicesOfLines(ctx context.Context, c auth.Caller, lines []*invoicing.LedgerLine) ([]*sqlc.Invoice, error) {
	out := make([]*sqlc.Invoice, len(lines))
	var ids []domain.InvoiceID
	var places []int
	for i, line := range lines {
		if line.InvoiceID != nil {
			ids, places = append(ids, *line.InvoiceID), append(places, i)
		}
	}
	if len(ids) == 0 {
		return out, nil
	}
	invoices, err := r.Invoicing.InvoicesByID(ctx, c, ids)
	for j, invoice := range invoices {
		out[places[j]] = invoice
	}
	return out, err
}

func isNotFound(err error) bool {
	var user domain.UserError
	return errors.As(err, &user) && user.GetCode() == domain.CodeNotFound
}
