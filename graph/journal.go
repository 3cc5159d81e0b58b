package graph

import (
	"context"
	"errors"
	"reflect"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"countersign/internal/accesslog"
	"countersign/internal/domain"
)

// journal tells the access log and the metrics which root fields a request has run, and what came of
// each. It stands outside of the other extensions, so that it sees what they refuse.
type journal struct {
	observe func(object, field, code string) // nil tells nobody
}

// ran is how a root field went, as far as its resolver was reached.
type ran struct{ codes []string }

type ranKey struct{}

// ExtensionName names the extension.
func (journal) ExtensionName() string { return "Journal" }

// Validate has nothing to check.
func (journal) Validate(graphql.ExecutableSchema) error { return nil }

// InterceptOperation notes what the client calls the operation.
func (journal) InterceptOperation(ctx context.Context, next graphql.OperationHandler) graphql.ResponseHandler {
	accesslog.From(ctx).Operation(graphql.GetOperationContext(ctx).Operation.Name)
	return next(ctx)
}

// InterceptRootField notes a root field once it is done.
func (j journal) InterceptRootField(ctx context.Context, next graphql.RootResolver) graphql.Marshaler {
	field, r := graphql.GetRootFieldContext(ctx).Field, &ran{}
	out := next(context.WithValue(ctx, ranKey{}, r))
	if r.codes == nil { // its resolver was not reached: an argument was bad, or a mutation before it failed
		r.codes = []string{firstCode(ctx, field.Alias)}
	}
	code, codes := "OK", r.codes
	if len(codes) > 0 {
		code = codes[0]
	}
	object := field.ObjectDefinition.Name
	if j.observe != nil {
		j.observe(object, field.Name, code)
	}
	if object == "Mutation" && field.Name != "__typename" {
		accesslog.From(ctx).Ran(accesslog.Mutation{Field: field.Name, Key: keyOf(ctx, field), Codes: codes})
	}
	return out
}

// noteAnswer notes what a root field's resolver, or the rule before it, has answered.
func noteAnswer(ctx context.Context, value any, err error) {
	if r, known := ctx.Value(ranKey{}).(*ran); known {
		r.codes = codesOf(value, err)
	}
}

// codesOf are the codes of what a root field was answered: of its error, or of its user errors.
func codesOf(value any, err error) []string {
	var refusal domain.UserError
	switch {
	case errors.As(err, &refusal):
		return []string{string(refusal.GetCode())}
	case err != nil:
		return []string{string(domain.CodeInternal)}
	}
	codes := []string{}
	if payload := reflect.Indirect(reflect.ValueOf(value)); payload.Kind() == reflect.Struct {
		if field := payload.FieldByName("UserErrors"); field.IsValid() {
			userErrors, _ := field.Interface().([]domain.UserError)
			for _, e := range userErrors[:min(len(userErrors), 10)] {
				codes = append(codes, string(e.GetCode()))
			}
		}
	}
	return codes
}

// firstCode is the code of the first error about a root field.
func firstCode(ctx context.Context, alias string) string {
	for _, e := range graphql.GetErrors(ctx) {
		if len(e.Path) > 0 && e.Path[0] == ast.PathName(alias) {
			code, _ := e.Extensions["code"].(string)
			return code
		}
	}
	return string(domain.CodeInternal)
}

// keyOf is the hash of the idempotency key of a mutation: the client's, or the one that was made for
// it; "" where neither is known.
func keyOf(ctx context.Context, field graphql.CollectedField) string {
	arguments := field.ArgumentMap(graphql.GetOperationContext(ctx).Variables)
	input, _ := arguments["input"].(map[string]any)
	if key, given := input["idempotencyKey"].(string); given {
		return accesslog.HashKey(key)
	}
	switch made := graphql.GetExtension(ctx, idempotencyKey).(type) {
	case string:
		return accesslog.HashKey(made)
	case map[string]string:
		if key, known := made[field.Alias]; known {
			return accesslog.HashKey(key)
		}
	}
	return ""
}
