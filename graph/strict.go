package graph

import (
	"context"
	"reflect"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator/core"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"countersign/internal/domain"
)

// documentRules are gqlparser's, and one of ours. Of those that suggest a name near a misspelt one,
// gqlgen silences only two.
func documentRules(suggest bool) *rules.Rules {
	r := rules.NewDefaultRules()
	if !suggest {
		r.ReplaceRule(rules.KnownArgumentNamesRule.Name, rules.KnownArgumentNamesRuleWithoutSuggestions.RuleFunc)
		r.ReplaceRule(rules.KnownTypeNamesRule.Name, rules.KnownTypeNamesRuleWithoutSuggestions.RuleFunc)
		r.ReplaceRule(rules.ValuesOfCorrectTypeRule.Name, rules.ValuesOfCorrectTypeRuleWithoutSuggestions.RuleFunc)
	}
	r.AddRule("NoNegativeZero", func(observers *core.Events, addError core.AddErrFunc) {
		observers.OnValue(func(_ *core.Walker, value *ast.Value) {
			if value.Kind == ast.IntValue && value.Raw == "-0" { // the parser would make it 0
				addError(core.Message("-0 is no whole number"), core.At(value.Position))
			}
		})
	})
	return r
}

// spelling refuses variables that spell an enum's value in another case, which gqlparser lets
// through.
type spelling struct{ schema *ast.Schema }

// ExtensionName names the extension.
func (spelling) ExtensionName() string { return "Spelling" }

// Validate has nothing to check.
func (spelling) Validate(graphql.ExecutableSchema) error { return nil }

// MutateOperationContext looks at the variables, and changes nothing.
func (s spelling) MutateOperationContext(_ context.Context, op *graphql.OperationContext) *gqlerror.Error {
	for _, v := range op.Operation.VariableDefinitions {
		if at := s.misspelt(v.Type, op.Variables[v.Variable], ast.Path{ast.PathName("variable"), ast.PathName(v.Variable)}); at != nil {
			return gqlerror.WrapPath(at, domain.BadInput("no value of the enum"))
		}
	}
	return nil
}

// misspelt is the path of a value that is no value of its enum; nil if there is none.
func (s spelling) misspelt(typ *ast.Type, value any, at ast.Path) ast.Path {
	def := s.schema.Types[typ.Name()]
	switch v := value.(type) {
	case string:
		if def.Kind == ast.Enum && def.EnumValues.ForName(v) == nil {
			return at
		}
	case map[string]any:
		for _, field := range def.Fields {
			if found := s.misspelt(field.Type, v[field.Name], append(at[:len(at):len(at)], ast.PathName(field.Name))); found != nil {
				return found
			}
		}
	default: // gqlparser makes lists of its own of what was no list
		if list := reflect.ValueOf(value); list.Kind() == reflect.Slice {
			for i := range list.Len() {
				if found := s.misspelt(typ, list.Index(i).Interface(), append(at[:len(at):len(at)], ast.PathIndex(i))); found != nil {
					return found
				}
			}
		}
	}
	return nil
}
