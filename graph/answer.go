package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/txn"
)

// caller is who calls. The access rule has let the field through, so somebody does.
func caller(ctx context.Context) auth.Caller {
	c, _ := auth.From(ctx)
	return c
}

// answer splits a use case's result into what a payload holds: the outcome, and the user errors.
// What no payload can answer stays an error. The key that asks for the same write again goes into
// the response's extensions where this server made it.
func answer[T any](ctx context.Context, out txn.Outcome[T], err error) (txn.Outcome[T], []domain.UserError, error) {
	if userErrors := domain.UserErrors(err); userErrors != nil {
		return txn.Outcome[T]{}, userErrors, nil
	}
	if err == nil && out.KeyMade {
		tellKey(ctx, out.Key)
	}
	return out, []domain.UserError{}, err
}

// idempotencyKey is the extension of a response that tells the keys which the server made.
const idempotencyKey = "idempotencyKey"

// tellKey puts a key that the server made into the response's extensions: as a string where the
// request has one mutation, else by the field's response name.
func tellKey(ctx context.Context, key string) {
	field := graphql.GetFieldContext(ctx)
	if mutations(graphql.GetOperationContext(ctx)) == 1 {
		graphql.RegisterExtension(ctx, idempotencyKey, key)
		return
	}
	keys, ok := graphql.GetExtension(ctx, idempotencyKey).(map[string]string) // root mutation fields run one by one
	if !ok {
		keys = map[string]string{}
		graphql.RegisterExtension(ctx, idempotencyKey, keys)
	}
	keys[field.Field.Alias] = key
}

// mutations is how many mutations a request runs, wherever in its fragments they stand.
func mutations(op *graphql.OperationContext) (n int) {
	if set := op.Operation.SelectionSet; len(set) == 1 {
		if _, plain := set[0].(*ast.Field); plain { // nearly always, and nothing to collect
			return 1
		}
	}
	for _, field := range graphql.CollectFields(op, op.Operation.SelectionSet, []string{"Mutation"}) {
		if field.Name != "__typename" {
			n++
		}
	}
	return n
}
