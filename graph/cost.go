package graph

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"countersign/internal/domain"
)

// listSize is how many elements a list that is no connection is taken to have: an invoice's lines,
// an order's payments.
const listSize = 3

// weights are of fields that read more than their answer shows.
var weights = map[string]int{
	"Query.doctor":       1_000, // it reads all of the tenant's data
	"Query.seriesAudit":  1_000, // and these all of a series'
	"SeriesChange.audit": 1_000,
}

// costing refuses an operation that would load too much, before it runs. It stands behind the
// limiter, so that an operation has few enough fields to look at each of them where it is spread.
type costing struct {
	schema *ast.Schema
	most   int
}

// ExtensionName names the extension.
func (costing) ExtensionName() string { return "Cost" }

// Validate has nothing to check.
func (costing) Validate(graphql.ExecutableSchema) error { return nil }

// MutateOperationContext weighs the operation with its variables, and changes nothing.
func (c costing) MutateOperationContext(_ context.Context, op *graphql.OperationContext) *gqlerror.Error {
	cost := c.costOf(op)
	if cost <= c.most {
		return nil
	}
	return gqlerror.WrapPath(nil, domain.Refuse(domain.CodeLimitExceeded, nil,
		"the request costs %d, and the most a request may cost is %d: ask for fewer rows at once", cost, c.most))
}

// costOf is how many statements an operation sends and how many rows it loads, if every page that
// it asks for is full and every list of another kind has listSize elements.
func (c costing) costOf(op *graphql.OperationContext) int {
	return c.selections(op.Operation.SelectionSet, op.Variables, 1)
}

// selections weighs what is selected on a number of rows. What all of them refer to is read in one
// statement, their pages too: see readTogether.
func (c costing) selections(set ast.SelectionSet, variables map[string]any, on int) (cost int) {
	for _, selection := range set {
		switch n := selection.(type) {
		case *ast.Field:
			if included(n.Directives, variables) {
				cost = sum(cost, c.field(n, variables, on))
			}
		case *ast.InlineFragment:
			if included(n.Directives, variables) {
				cost = sum(cost, c.selections(n.SelectionSet, variables, on))
			}
		case *ast.FragmentSpread:
			if included(n.Directives, variables) {
				cost = sum(cost, c.selections(n.Definition.SelectionSet, variables, on))
			}
		}
	}
	return cost
}

func (c costing) field(f *ast.Field, variables map[string]any, on int) int {
	if strings.HasPrefix(f.Name, "__") {
		return 0 // of the schema, which is in memory
	}
	cost := weights[f.ObjectDefinition.Name+"."+f.Name]
	def := c.schema.Types[f.Definition.Type.Name()]
	if def.IsLeafType() {
		return cost
	}
	of := on
	switch {
	case isConnection(f.Definition):
		of = product(on, pageSize(f, variables))
		cost = sum(cost, sum(1, of))
	case f.Definition.Arguments.ForName("ids") != nil:
		of = product(on, length(f.Arguments.ForName("ids"), variables))
		cost = sum(cost, sum(1, of))
	case isPart(def):
	case f.Definition.Type.Elem != nil && def.Name == "UserError":
	case f.Definition.Type.Elem != nil && isPart(f.ObjectDefinition) && !strings.HasSuffix(f.ObjectDefinition.Name, "Payload"):
		// the nodes and edges of a page, which has been counted
	case f.Definition.Type.Elem != nil:
		of = product(on, listSize)
		cost = sum(cost, sum(1, of))
	case strings.HasSuffix(f.ObjectDefinition.Name, "Edge"):
		// the node of an edge
	default:
		cost = sum(cost, sum(1, of))
	}
	return sum(cost, c.selections(f.SelectionSet, variables, of))
}

// isConnection says whether a field is a list by pages.
func isConnection(f *ast.FieldDefinition) bool {
	return strings.HasSuffix(f.Type.Name(), "Connection") && f.Arguments.ForName("first") != nil
}

// isPart says whether a type is part of the row, page or payload that it belongs to, and is not
// loaded for itself.
func isPart(def *ast.Definition) bool {
	for _, end := range []string{"Edge", "Connection", "Payload", "PageInfo", "Money"} {
		if strings.HasSuffix(def.Name, end) {
			return true
		}
	}
	return false
}

// pageSize is how many rows a connection is asked for. One past what a page may have is refused by
// the connection itself.
func pageSize(f *ast.Field, variables map[string]any) int {
	for _, name := range []string{"first", "last"} {
		if size, ok := number(argument(f.Arguments.ForName(name), variables)); ok {
			return max(0, min(size, maxPage))
		}
	}
	return defaultPage
}

// length is how many elements a list has.
func length(a *ast.Argument, variables map[string]any) int {
	if list, ok := argument(a, variables).([]any); ok {
		return len(list)
	}
	return 1
}

// argument is an argument's value; nil where there is none, or none that can be read.
func argument(a *ast.Argument, variables map[string]any) any {
	if a == nil {
		return nil
	}
	value, err := a.Value.Value(variables)
	if err != nil {
		return nil
	}
	return value
}

func number(value any) (int, bool) {
	switch n := value.(type) {
	case int64:
		return int(n), true
	case json.Number:
		i, err := n.Int64()
		return int(i), err == nil
	case float64:
		return int(max(0, min(n, maxPage))), true
	}
	return 0, false
}

// included says whether directives leave a selection in.
func included(directives ast.DirectiveList, variables map[string]any) bool {
	if len(directives) == 0 {
		return true
	}
	for name, leavesOut := range map[string]bool{"skip": true, "include": false} {
		if d := directives.ForName(name); d != nil {
			if given, ok := argument(d.Arguments.ForName("if"), variables).(bool); ok && given == leavesOut {
				return false
			}
		}
	}
	return true
}
