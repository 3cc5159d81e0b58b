package graph

import (
	"context"
	"reflect"
	"slices"

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
		if inside, found := s.misspelt(v.Type, op.Variables[v.Variable]); found {
			slices.Reverse(inside)
			return gqlerror.WrapPath(append(ast.Path{ast.PathName("variable"), ast.PathName(v.Variable)}, inside...), domain.BadInput("no value of the enum"))
		}
	}
	return nil
}

// misspelt finds a value that is no value of its enum, and where it stands inside, innermost first:
// a path is made only of what is found.
func (s spelling) misspelt(typ *ast.Type, value any) (inside ast.Path, found bool) {
	def := s.schema.Types[typ.Name()]
	switch v := value.(type) {
	case string:
		return nil, def.Kind == ast.Enum && def.EnumValues.ForName(v) == nil
	case map[string]any:
		for _, field := range def.Fields {
			if inside, found := s.misspelt(field.Type, v[field.Name]); found {
				return append(inside, ast.PathName(field.Name)), true
			}
		}
	default: // gqlparser makes lists of its own of what was no list
		if list := reflect.ValueOf(value); list.Kind() == reflect.Slice {
			for i := range list.Len() {
				if inside, found := s.misspelt(typ, list.Index(i).Interface()); found {
					return append(inside, ast.PathIndex(i)), true
				}
			}
		}
	}
	return nil, false
}
