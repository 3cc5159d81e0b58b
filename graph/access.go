package graph

import (
	"context"
	"slices"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"countersign/internal/auth"
	"countersign/internal/domain"
)

// access holds which roles may reach each field, "Type.field": the @access rule of the field, else
// of its type. A field that has neither is part of what its parent let through.
type access map[string][]domain.Role

// accessRules are the schema's.
var accessRules = newAccess(parsedSchema)

// newAccess reads the rules from the schema.
func newAccess(schema *ast.Schema) access {
	rules := access{}
	for _, def := range schema.Types {
		for _, field := range def.Fields {
			rule := field.Directives.ForName("access")
			if rule == nil {
				rule = def.Directives.ForName("access")
			}
			if rule == nil {
				continue
			}
			for _, role := range rule.Arguments.ForName("to").Value.Children {
				key := def.Name + "." + field.Name
				rules[key] = append(rules[key], domain.Role(role.Value.Raw))
			}
		}
	}
	return rules
}

// ExtensionName names the extension.
func (access) ExtensionName() string { return "Access" }

// Validate has nothing to check.
func (access) Validate(graphql.ExecutableSchema) error { return nil }

// InterceptField refuses a field to those who may not reach it, before its resolver runs.
func (a access) InterceptField(ctx context.Context, next graphql.Resolver) (any, error) {
	field := graphql.GetFieldContext(ctx)
	name := field.Object + "." + field.Field.Name
	if _, ruled := a[name]; !ruled {
		return next(ctx)
	}
	c, known := auth.From(ctx)
	switch {
	case !known:
		return nil, domain.Refuse(domain.CodeUnauthenticated, nil, "an access token is required")
	case !a.reaches(c.Role, name):
		return nil, domain.Refuse(domain.CodeForbidden, nil, "the role %s may not reach %s.%s", c.Role, field.Object, field.Field.Name)
	}
	return next(ctx)
}

// reaches says whether a role may reach a field, "Type.field", that has a rule.
func (a access) reaches(role domain.Role, field string) bool { return slices.Contains(a[field], role) }
