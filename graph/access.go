package graph

import (
	"context"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"countersign/internal/auth"
	"countersign/internal/domain"
)

// access holds who may reach each field, "Type.field".
type access struct {
	of map[string]rule
}

// rule is who may reach a field: the @access rule of the field, else of its type. A field that has
// neither is part of what its parent let through.
type rule struct {
	roles  []domain.Role
	scoped bool         // a narrowed caller needs scope
	scope  domain.Scope // "": no narrowed caller has it
}

func (r rule) admits(role domain.Role) bool { return slices.Contains(r.roles, role) }

// accessRules are the schema's.
var accessRules = newAccess(parsedSchema)

// newAccess reads the rules from the schema.
func newAccess(schema *ast.Schema) access {
	a := access{map[string]rule{}}
	for _, def := range schema.Types {
		for _, field := range def.Fields {
			directive := field.Directives.ForName("access")
			if directive == nil {
				directive = def.Directives.ForName("access")
			}
			r := rule{}
			if directive != nil {
				for _, role := range directive.Arguments.ForName("to").Value.Children {
					r.roles = append(r.roles, domain.Role(role.Value.Raw))
				}
			}
			r.scoped, r.scope = scopeOf(schema, def, field)
			if directive != nil || r.scoped {
				a.of[def.Name+"."+field.Name] = r
			}
		}
	}
	return a
}

// scopeOf is what a narrowed caller needs for a field. A mutation takes the scope of its rule, and
// without one none will do. A query takes READ, and so does a link from one node to others: who may
// only write reads what a mutation answers, and cannot go on from there through all that there is.
func scopeOf(schema *ast.Schema, def *ast.Definition, field *ast.FieldDefinition) (scoped bool, scope domain.Scope) {
	if def == schema.Mutation {
		if directive := field.Directives.ForName("access"); directive != nil {
			if argument := directive.Arguments.ForName("scope"); argument != nil {
				scope = ScopeNamed(argument.Value.Raw)
			}
		}
		return true, scope
	}
	if strings.HasPrefix(field.Name, "__") {
		return false, ""
	}
	of := schema.Types[field.Type.Name()]
	link := of != nil && (slices.Contains(of.Interfaces, "Node") || strings.HasSuffix(of.Name, "Connection")) && !answers(schema, def)
	return def == schema.Query || link && def.Kind == ast.Object, domain.ScopeRead
}

// answers says whether a type is the payload of a mutation.
func answers(schema *ast.Schema, def *ast.Definition) bool {
	return schema.Mutation != nil && slices.ContainsFunc(schema.Mutation.Fields, func(f *ast.FieldDefinition) bool { return f.Type.Name() == def.Name })
}

// ScopeNamed is the scope that the schema's enum calls so: INVOICES_WRITE is invoices:write.
func ScopeNamed(enum string) domain.Scope {
	return domain.Scope(strings.Replace(strings.ToLower(enum), "_", ":", 1))
}

// check refuses a field to those who may not reach it.
func (a access) check(ctx context.Context, field *graphql.FieldContext) error {
	rule, ruled := a.of[field.Object+"."+field.Field.Name]
	if !ruled {
		return nil
	}
	c, known := auth.From(ctx)
	switch {
	case !known:
		return domain.Refuse(domain.CodeUnauthenticated, nil, "an access token is required")
	case rule.roles != nil && !rule.admits(c.Role):
		return domain.Refuse(domain.CodeForbidden, nil, "the role %s may not reach %s.%s", c.Role, field.Object, field.Field.Name)
	case rule.scoped && !c.Scopes.Allow(rule.scope):
		return missing(rule.scope, field)
	}
	return nil
}

// missing names the scope that a caller lacks.
func missing(scope domain.Scope, field *graphql.FieldContext) error {
	if scope == "" {
		return domain.Refuse(domain.CodeForbidden, nil, "no scope reaches %s.%s: it takes a token that is not narrowed to scopes", field.Object, field.Field.Name)
	}
	return domain.Refuse(domain.CodeForbidden, nil, "%s.%s takes the scope %s", field.Object, field.Field.Name, scope)
}
