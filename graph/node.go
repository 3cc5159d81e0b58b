package graph

import (
	"context"
	"maps"
	"slices"
	"strings"

	"countersign/internal/auth"
	"countersign/internal/domain"
)

// loader reads rows by their ids: each at its place, nil where there is none that the caller may
// know of.
type loader[ID domain.ID, Row any] func(ctx context.Context, c auth.Caller, ids []ID) ([]*Row, error)

// one reads a row by its printed id, the argument "id" of a field.
func one[ID domain.ID, Row any](ctx context.Context, id string, load loader[ID, Row]) (*Row, error) {
	parsed, err := domain.ParseID[ID](id)
	if err != nil {
		return nil, about("id", err)
	}
	rows, err := load(ctx, caller(ctx), []ID{parsed})
	if err != nil {
		return nil, err
	}
	return rows[0], nil
}

// nodeLoader reads nodes of one kind by their printed ids.
type nodeLoader func(ctx context.Context, ids []string) ([]domain.Node, error)

func nodesOf[ID domain.ID, Row any](load loader[ID, Row]) nodeLoader {
	return func(ctx context.Context, ids []string) ([]domain.Node, error) {
		parsed := make([]ID, len(ids))
		for i, id := range ids {
			var err error
			if parsed[i], err = domain.ParseID[ID](id); err != nil {
				return nil, err
			}
		}
		rows, err := load(ctx, caller(ctx), parsed)
		if err != nil {
			return nil, err
		}
		nodes := make([]domain.Node, len(rows))
		for i, row := range rows {
			if row != nil { // a nil row in an interface would not be nil
				nodes[i] = row
			}
		}
		return nodes, nil
	}
}

// nodeKind is a type of node: its name in the schema, and how it is read.
type nodeKind struct {
	object string
	load   nodeLoader
}

// nodeKinds are the kinds of node by the prefix of their ids.
func (r *Resolver) nodeKinds() map[string]nodeKind {
	return map[string]nodeKind{
		"cus": {"Customer", nodesOf(r.Invoicing.CustomersByID)},
		"inv": {"Invoice", nodesOf(r.Invoicing.InvoicesByID)},
		"key": {"ApiKey", nodesOf(r.Metering.KeysByID)},
		"ord": {"Order", nodesOf(r.Ordering.OrdersByID)},
		"prd": {"Product", nodesOf(r.Ordering.ProductsByID)},
		"set": {"UsageSettlement", nodesOf(r.Metering.SettlementsByID)},
		"tok": {"AccessToken", nodesOf(r.Tokens.ByID)},
		"ser": {"InvoiceSeries", nodesOf(r.Invoicing.SeriesByID)},
	}
}

// maxNodes bounds nodes(ids:).
const maxNodes = 100

// nodes reads nodes of any kind, one statement a kind. argument names what a fault is about.
func (r *Resolver) nodes(ctx context.Context, argument string, ids []string) ([]domain.Node, error) {
	if len(ids) > maxNodes {
		return nil, domain.BadInputAt([]string{argument}, "at most %d ids", maxNodes)
	}
	kinds := r.nodeKinds()
	places := map[string][]int{}
	for i, id := range ids {
		kind := domain.IDKind(id)
		if kinds[kind].load == nil {
			known := slices.Sorted(maps.Keys(kinds))
			return nil, domain.BadInputAt([]string{argument}, "expected an id of one of the kinds %s_…", strings.Join(known, "_…, "))
		}
		places[kind] = append(places[kind], i)
	}
	out := make([]domain.Node, len(ids))
	for kind := range places {
		if !accessRules.of[kinds[kind].object+".id"].admits(caller(ctx).Role) {
			continue // to this role there is none: whether one exists is not for it to know
		}
		of := make([]string, len(places[kind]))
		for j, i := range places[kind] {
			of[j] = ids[i]
		}
		found, err := kinds[kind].load(ctx, of)
		if err != nil {
			return nil, about(argument, err)
		}
		for j, i := range places[kind] {
			out[i] = found[j]
		}
	}
	return out, nil
}
