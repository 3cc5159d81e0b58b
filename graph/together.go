package graph

import (
	"context"
	"sync"

	"github.com/99designs/gqlgen/graphql"
)

// What rows refer to is read for all of them at once. gqlgen does that for the rows of one plain
// list, but not for edges { node }, nor across the lists that hang on a list's rows. So each
// operation keeps which rows were read together: the first of them to ask for a field loads it for
// all, the others wait for that, and what was loaded was read together in its turn.

// together makes a batch resolver's answer where each row refers to one thing.
func together[Row, T any](ctx context.Context, rows []*Row, load func(ctx context.Context, rows []*Row) ([]*T, error)) ([]*T, error) {
	return share(ctx, rows, func(ctx context.Context, rows []*Row) ([]*T, error) {
		loaded, err := load(ctx, rows)
		readTogether(ctx, loaded)
		return loaded, err
	})
}

// togetherMany makes a batch resolver's answer where each row refers to several things.
func togetherMany[Row, T any](ctx context.Context, rows []*Row, load func(ctx context.Context, rows []*Row) ([][]*T, error)) ([][]*T, error) {
	return togetherManyAs(ctx, graphql.GetFieldContext(ctx).Field.Name, rows, load)
}

// togetherManyAs is togetherMany where several fields are made of what is loaded, under one name.
func togetherManyAs[Row, T any](ctx context.Context, name string, rows []*Row, load func(ctx context.Context, rows []*Row) ([][]*T, error)) ([][]*T, error) {
	return shareAs(ctx, name, rows, func(ctx context.Context, rows []*Row) ([][]*T, error) {
		loaded, err := load(ctx, rows)
		var all []*T
		for i, of := range loaded {
			if of == nil {
				loaded[i] = []*T{} // null would say that it could not be read
			}
			all = append(all, of...)
		}
		readTogether(ctx, all)
		return loaded, err
	})
}

// share loads a field for the siblings of these rows, once, and answers for these rows.
func share[Row, T any](ctx context.Context, rows []*Row, load func(ctx context.Context, rows []*Row) ([]T, error)) ([]T, error) {
	return shareAs(ctx, graphql.GetFieldContext(ctx).Field.Name, rows, load)
}

// shareAs is share under another name than the field's.
func shareAs[Row, T any](ctx context.Context, name string, rows []*Row, load func(ctx context.Context, rows []*Row) ([]T, error)) ([]T, error) {
	of, known := siblingsOf(ctx).Load(rows[0])
	if !known { // not of a page: gqlgen has the whole list
		of = readTogether(ctx, rows)
	}
	s := of.(*siblings)
	once, _ := s.loads.LoadOrStore(name, sync.OnceValues(func() (map[*Row]T, error) {
		all := s.rows.([]*Row)
		loaded, err := load(ctx, all)
		if err != nil {
			return nil, err
		}
		byRow := make(map[*Row]T, len(all))
		for i, row := range all {
			byRow[row] = loaded[i]
		}
		return byRow, nil
	}))
	byRow, err := once.(func() (map[*Row]T, error))()
	if err != nil {
		return nil, err
	}
	out := make([]T, len(rows))
	for i, row := range rows {
		out[i] = byRow[row]
	}
	return out, nil
}

// siblings are rows that were read together.
type siblings struct {
	rows  any      // []*Row, each once
	loads sync.Map // by the field's name and arguments, or the name it shares
}

// readTogether says that rows were read together; nil ones are none.
func readTogether[Row any](ctx context.Context, rows []*Row) *siblings {
	seen := make(map[*Row]bool, len(rows))
	each := make([]*Row, 0, len(rows))
	for _, row := range rows {
		if row != nil && !seen[row] {
			seen[row] = true
			each = append(each, row)
		}
	}
	s := &siblings{rows: each}
	for _, row := range each {
		siblingsOf(ctx).Store(row, s)
	}
	return s
}

type siblingsKey struct{}

// siblingsOf are the operation's siblings, by each of their rows.
func siblingsOf(ctx context.Context) *sync.Map {
	known, _ := ctx.Value(siblingsKey{}).(*sync.Map)
	return known
}

// sharing gives each operation the rows that it has read together.
type sharing struct{}

// ExtensionName names the extension.
func (sharing) ExtensionName() string { return "Sharing" }

// Validate has nothing to check.
func (sharing) Validate(graphql.ExecutableSchema) error { return nil }

// InterceptOperation begins without any.
func (sharing) InterceptOperation(ctx context.Context, next graphql.OperationHandler) graphql.ResponseHandler {
	return next(context.WithValue(ctx, siblingsKey{}, &sync.Map{}))
}
