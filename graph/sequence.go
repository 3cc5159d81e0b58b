package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"countersign/internal/domain"
)

// sequence stops a request's mutations after one that failed: the rest are not run and answer
// null with NOT_RUN. A failure is an error of the field's own resolver or arguments; user errors
// and errors of nested fields are none. It stops them, too, once the client has hung up.
type sequence struct{}

// progress is how far the mutations of one request have come. They run one by one.
type progress struct{ failed, resolved bool }

type progressKey struct{}

// ExtensionName names the extension.
func (sequence) ExtensionName() string { return "Sequence" }

// Validate has nothing to check.
func (sequence) Validate(graphql.ExecutableSchema) error { return nil }

// InterceptOperation gives a mutation request its progress.
func (sequence) InterceptOperation(ctx context.Context, next graphql.OperationHandler) graphql.ResponseHandler {
	if graphql.GetOperationContext(ctx).Operation.Operation == ast.Mutation {
		ctx = context.WithValue(ctx, progressKey{}, &progress{})
	}
	return next(ctx)
}

// InterceptRootField sees a field whose arguments could not be read, which no resolver sees.
func (sequence) InterceptRootField(ctx context.Context, next graphql.RootResolver) graphql.Marshaler {
	p, ok := ctx.Value(progressKey{}).(*progress)
	if !ok || graphql.GetRootFieldContext(ctx).Object == "__typename" {
		return next(ctx)
	}
	p.resolved = false
	value := next(ctx)
	if !p.resolved {
		p.failed = true
	}
	return value
}

// InterceptField runs a mutation, or does not.
func (sequence) InterceptField(ctx context.Context, next graphql.Resolver) (any, error) {
	p, ok := ctx.Value(progressKey{}).(*progress)
	if !ok || graphql.GetFieldContext(ctx).Object != "Mutation" {
		return next(ctx)
	}
	p.resolved = true
	if p.failed || ctx.Err() != nil {
		p.failed = true
		return nil, domain.Refuse(domain.CodeNotRun, nil, "not run, since a mutation before it failed")
	}
	value, err := next(ctx)
	p.failed = err != nil
	return value, err
}
