package graph

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"countersign/graph/model"
	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/paging"
)

// The size of a page: what a client may ask for, and what it gets if it does not.
const (
	maxPage     = 100
	defaultPage = 25
)

// window is what a client asks of a connection.
type window struct {
	first  *int32
	after  *string
	last   *int32
	before *string
}

// keys says how a list's cursors are written: lowest and highest lie outside every key of it.
type keys[K any] struct {
	list            string // which list, so that a cursor of another is refused
	lowest, highest K
	write           func(K) []byte
	read            func([]byte) (K, bool)
}

func (k keys[K]) cursor(key K) string {
	return base64.RawURLEncoding.EncodeToString(append([]byte(k.list+":"), k.write(key)...))
}

func (k keys[K]) parse(argument, cursor string) (key K, err error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	tail, found := bytes.CutPrefix(raw, []byte(k.list+":"))
	key, ok := k.read(tail)
	if err != nil || !found || !ok || k.cursor(key) != cursor { // the decoder skips line breaks
		return key, domain.BadInputAt([]string{argument}, "not a cursor of this list")
	}
	return key, nil
}

// request checks a window.
func request[K any](k keys[K], w window) (r paging.Request[K], err error) {
	r = paging.Request[K]{After: k.lowest, Before: k.highest, Size: defaultPage}
	size, argument := w.first, "first"
	if w.last != nil {
		if w.first != nil {
			return r, domain.BadInputAt([]string{"last"}, "a page has a first or a last, not both")
		}
		size, argument, r.Backward = w.last, "last", true
	}
	if size != nil {
		if *size < 1 || *size > maxPage {
			return r, domain.BadInputAt([]string{argument}, "%s is 1 to %d", argument, maxPage)
		}
		r.Size = *size
	}
	if w.after != nil {
		if r.After, err = k.parse("after", *w.after); err != nil {
			return r, err
		}
	}
	if w.before != nil {
		if r.Before, err = k.parse("before", *w.before); err != nil {
			return r, err
		}
	}
	r.Inside = w.after != nil && !r.Backward || w.before != nil && r.Backward
	return r, nil
}

// idKeys are the keys of a list in order of creation.
func idKeys[T ~[16]byte](list string) keys[T] {
	var highest T
	for i := range highest {
		highest[i] = 0xff
	}
	return keys[T]{
		list: list, highest: highest,
		write: func(id T) []byte { return id[:] },
		read: func(raw []byte) (id T, ok bool) {
			copy(id[:], raw)
			return id, len(raw) == len(id)
		},
	}
}

// numberKeys are the keys of a series' invoices, in the order of their numbers.
var numberKeys = keys[invoicing.NumberKey]{
	list:    "number",
	lowest:  invoicing.NumberKey{PeriodStart: domain.NewDate(1, time.January, 1)},
	highest: invoicing.NumberKey{PeriodStart: domain.NewDate(9999, time.December, 31)},
	write: func(k invoicing.NumberKey) []byte {
		return binary.BigEndian.AppendUint64(periodKeys.write(k.PeriodStart), uint64(k.Sequence))
	},
	read: func(raw []byte) (k invoicing.NumberKey, ok bool) {
		if len(raw) != 16 {
			return k, false
		}
		k.PeriodStart, ok = periodKeys.read(raw[:8])
		k.Sequence = int64(binary.BigEndian.Uint64(raw[8:]))
		return k, ok
	},
}

// periodKeys are the keys of a series' periods: their first days.
var periodKeys = keys[domain.Date]{
	list:    "period",
	lowest:  domain.NewDate(1, time.January, 1),
	highest: domain.NewDate(9999, time.December, 31),
	write:   func(day domain.Date) []byte { return binary.BigEndian.AppendUint64(nil, uint64(day.Unix())) },
	read: func(raw []byte) (day domain.Date, ok bool) {
		if len(raw) != 8 {
			return day, false
		}
		day = domain.Date{Time: time.Unix(int64(binary.BigEndian.Uint64(raw)), 0).UTC()}
		return day, day.Year() >= 1 && day.Year() <= 9999
	},
}

// changeKeys are the keys of a series' changes: their positions.
var changeKeys = keys[int32]{
	list: "change", lowest: 0, highest: math.MaxInt32,
	write: func(position int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(position)) },
	read: func(raw []byte) (position int32, ok bool) {
		if len(raw) != 4 {
			return 0, false
		}
		position = int32(binary.BigEndian.Uint32(raw))
		return position, position >= 1
	},
}

// edges wraps a page's rows, which were read together, with their cursors, and says where the page
// lies: the rows that a window's cursors were taken from lie outside it.
func edges[K, Row, Edge any](ctx context.Context, k keys[K], w window, p paging.Page[*Row], key func(*Row) K, edge func(cursor string, row *Row) Edge) ([]Edge, *model.PageInfo) {
	readTogether(ctx, p.Rows)
	out := make([]Edge, len(p.Rows))
	info := &model.PageInfo{HasNextPage: p.HasNext || w.before != nil, HasPreviousPage: p.HasPrevious || w.after != nil}
	for i, row := range p.Rows {
		cursor := k.cursor(key(row))
		out[i] = edge(cursor, row)
		if i == 0 {
			info.StartCursor = &cursor
		}
		info.EndCursor = &cursor
	}
	return out, info
}

// pagesOf makes a batch resolver's answer where each row has a list of its own: the rows' pages are
// read at once, and so is what their rows refer to.
func pagesOf[Parent, Row, K, Connection any](
	ctx context.Context, parents []*Parent, k keys[K], w window,
	list func(ctx context.Context, c auth.Caller, parents []*Parent, r paging.Request[K]) ([]paging.Page[*Row], error),
	connect func(paging.Page[*Row]) *Connection,
) ([]*Connection, error) {
	req, err := request(k, w)
	if err != nil {
		return nil, err
	}
	return shareAs(ctx, w.of(graphql.GetFieldContext(ctx).Field.Name), parents, func(ctx context.Context, parents []*Parent) ([]*Connection, error) {
		pages, err := list(ctx, caller(ctx), parents, req)
		if err != nil {
			return nil, err
		}
		var all []*Row
		connections := make([]*Connection, len(pages))
		for i, page := range pages {
			connections[i] = connect(page)
			all = append(all, page.Rows...)
		}
		readTogether(ctx, all)
		return connections, nil
	})
}

// of tells the pages of a list from those by another window.
func (w window) of(list string) string {
	text, _ := json.Marshal([]any{list, w.first, w.after, w.last, w.before}) // numbers and strings
	return string(text)
}
