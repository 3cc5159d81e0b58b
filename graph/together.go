package graph

import (
	"context"
	"slices"
	"sync"

	"github.com/99designs/gqlgen/graphql"

	"countersign/graph/model"
)

// together makes a batch resolver's answer for a whole page where gqlgen asks row by row: it batches
// a plain list of rows, but not edges { node }. The first row to ask loads for all that stand in its
// page, and the others wait for that.
func together[Row comparable, T any](ctx context.Context, rows []Row, load func(ctx context.Context, rows []Row) ([]T, error)) ([]T, error) {
	field := graphql.GetFieldContext(ctx)
	page, siblings := pageOf[Row](field)
	place := slices.Index(siblings, rows[0])
	if len(rows) > 1 || place < 0 {
		return load(ctx, rows)
	}
	loads, _ := ctx.Value(loadsKey{}).(*sync.Map)
	once, _ := loads.LoadOrStore(loadOf{page, field.Field.Alias}, sync.OnceValues(func() ([]T, error) {
		return load(ctx, siblings)
	}))
	all, err := once.(func() ([]T, error))()
	if err != nil {
		return nil, err
	}
	return all[place : place+1], nil
}

// pageOf is the page that a field's row stands in, at edges.0.node, and its rows.
func pageOf[Row any](field *graphql.FieldContext) (page *graphql.FieldContext, rows []Row) {
	node := field.Parent
	if node == nil || node.Parent == nil || node.Parent.Index == nil {
		return nil, nil
	}
	page = node.Parent.Parent
	switch edges := page.Result.(type) {
	case []*model.InvoiceEdge:
		rows = nodesIn[Row](edges, func(e *model.InvoiceEdge) any { return e.Node })
	case []*model.OrderEdge:
		rows = nodesIn[Row](edges, func(e *model.OrderEdge) any { return e.Node })
	case []*model.ProductEdge:
		rows = nodesIn[Row](edges, func(e *model.ProductEdge) any { return e.Node })
	}
	return page, rows
}

func nodesIn[Row, Edge any](edges []Edge, node func(Edge) any) (rows []Row) {
	for _, edge := range edges {
		if row, ok := node(edge).(Row); ok {
			rows = append(rows, row)
		}
	}
	return rows
}

// loadOf names a load: of one field, for the rows of one page.
type loadOf struct {
	page  *graphql.FieldContext
	field string
}

type loadsKey struct{}

// sharing gives each operation the loads that its rows share.
type sharing struct{}

// ExtensionName names the extension.
func (sharing) ExtensionName() string { return "Sharing" }

// Validate has nothing to check.
func (sharing) Validate(graphql.ExecutableSchema) error { return nil }

// InterceptOperation begins without any.
func (sharing) InterceptOperation(ctx context.Context, next graphql.OperationHandler) graphql.ResponseHandler {
	return next(context.WithValue(ctx, loadsKey{}, &sync.Map{}))
}
