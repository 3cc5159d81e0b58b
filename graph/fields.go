package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
)

// fields stands before every field: its access rule, and behind a root field those who note how it
// went. It is the one extension that does, since each costs every field of every row.
type fields struct{ access }

// ExtensionName names the extension.
func (fields) ExtensionName() string { return "Fields" }

// Validate has nothing to check.
func (fields) Validate(graphql.ExecutableSchema) error { return nil }

// InterceptField resolves a field for those who may reach it.
func (f fields) InterceptField(ctx context.Context, next graphql.Resolver) (value any, err error) {
	field := graphql.GetFieldContext(ctx)
	if err = f.check(ctx, field); err == nil {
		value, err = next(ctx)
	}
	if field.Object == "Mutation" || field.Object == "Query" {
		noteAnswer(ctx, value, err)
		noteProgress(ctx, err)
	}
	return value, err
}
