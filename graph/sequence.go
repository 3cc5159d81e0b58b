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

// progress is how the mutations of one request have gone so far. They run one by one.
type progress struct{ failed bool }

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

// InterceptRootField runs a mutation, or does not. It stands before the arguments are read.
func (sequence) InterceptRootField(ctx context.Context, next graphql.RootResolver) graphql.Marshaler {
	p, ok := ctx.Value(progressKey{}).(*progress)
	if !ok {
		return next(ctx)
	}
	if p.failed || ctx.Err() != nil {
		p.failed = true
		field := &graphql.FieldContext{Object: "Mutation", Field: graphql.GetRootFieldContext(ctx).Field}
		graphql.AddError(graphql.WithFieldContext(ctx, field), domain.Refuse(domain.CodeNotRun, nil, "not run, since a mutation before it failed"))
		return graphql.Null
	}
	p.failed = true // until its resolver has answered: it may never be called, and it may panic
	return next(ctx)
}

// noteProgress notes how a root field went; the sequence of a query is none.
func noteProgress(ctx context.Context, err error) {
	if p, ok := ctx.Value(progressKey{}).(*progress); ok {
		p.failed = err != nil
	}
}
