package graph_test

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	server "countersign/graph"
)

// lookUps are the fields of the schema's objects that are read for, "Type.field": those that have a
// resolver. Root fields are none: they fail as a whole.
var lookUps = func() map[string]bool {
	found := map[string]bool{}
	resolvers := reflect.TypeFor[server.ResolverRoot]()
	for resolver := range resolvers.Methods() {
		def := schema.Types[resolver.Name]
		if def == schema.Query || def == schema.Mutation {
			continue
		}
		for method := range resolver.Type.Out(0).Methods() {
			for _, field := range fields(def) {
				if strings.EqualFold(field.Name, method.Name) {
					found[def.Name+"."+field.Name] = true
				}
			}
		}
	}
	return found
}()

// TestLookUpsAreNullable: a field that has to be read for may be null, list or not: where it cannot be
// read it takes nothing of a committed result but itself.
func TestLookUpsAreNullable(t *testing.T) {
	t.Parallel()
	if len(lookUps) < 20 || !lookUps["Order.items"] || !lookUps["Customer.invoices"] || !lookUps["ApiKey.settlements"] {
		t.Fatalf("found only %v", lookUps)
	}
	for name := range lookUps {
		object, field, _ := strings.Cut(name, ".")
		if schema.Types[object].Fields.ForName(field).Type.NonNull {
			t.Errorf("%s cannot be null", name)
		}
	}
}

// reach is a type that an object leads to, and the shortest way to it: the fields from one to the
// next, with the arguments and the connection's rows that they need.
type reach struct {
	def  *ast.Definition
	path []*ast.FieldDefinition
}

// reachable are the object types that an object leads to, itself first, nearest first.
func reachable(from *ast.Definition) (found []reach) {
	seen := map[*ast.Definition]bool{from: true}
	found = []reach{{def: from}}
	for i := 0; i < len(found); i++ {
		for _, field := range fields(found[i].def) {
			def := rowsOf(field)
			if def.Kind == ast.Object && !seen[def] {
				seen[def] = true
				found = append(found, reach{def, append(slices.Clone(found[i].path), field)})
			}
		}
	}
	return found
}

// rowsOf is the type of what a field leads to; of a connection, of its rows.
func rowsOf(field *ast.FieldDefinition) *ast.Definition {
	def := schema.Types[field.Type.Name()]
	if strings.HasSuffix(def.Name, "Connection") {
		return schema.Types[def.Fields.ForName("nodes").Type.Name()]
	}
	return def
}

// selection asks for a field and, of what it leads to, for something. Two rows of a connection.
func selection(field *ast.FieldDefinition, inside string) string {
	switch {
	case schema.Types[field.Type.Name()].IsLeafType():
		return " " + field.Name
	case strings.HasSuffix(field.Type.Name(), "Connection"):
		return fmt.Sprintf(" %s(first: 2) { nodes { %s } }", field.Name, inside)
	}
	return fmt.Sprintf(" %s { %s }", field.Name, inside)
}

// along asks for something at the end of a way.
func along(path []*ast.FieldDefinition, inside string) string {
	for _, field := range slices.Backward(path) {
		inside = selection(field, inside)
	}
	return inside
}

// TestCase42NestedFaults: whichever nested field of whichever mutation cannot be read once the mutation
// has committed takes nothing of the answer but itself; asked again by its key, the result is there.
func TestCase42NestedFaults(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	forced := map[string]bool{}
	for _, m := range repeatables {
		ask := func(inside string) response {
			input := m.input(a.demo)
			input["idempotencyKey"] = "form " + m.field
			return a.do(t, a.demo.admin, `mutation ($i: `+m.inputType+`!) { f: `+m.field+`(input: $i) { `+inside+` userErrors { code } } }`, vars{"i": input})
		}
		payload := schema.Types[strings.TrimSuffix(m.inputType, "Input")+"Payload"]
		types := reachable(payload)
		// The first time everything that is read for fails, so that it fails right after the COMMIT.
		everything := map[string]bool{}
		for _, r := range types {
			for _, field := range r.def.Fields {
				if lookUps[r.def.Name+"."+field.Name] && !slices.ContainsFunc(r.path, isLookUp(payload)) {
					everything[along(r.path, selection(field, "__typename"))] = true
				}
			}
		}
		var failed atomic.Int32
		a.db.Fail(func(ctx context.Context) bool {
			at := graphql.GetFieldContext(ctx)
			nested := at != nil && at.Object != "Mutation"
			if nested {
				failed.Add(1)
			}
			return nested
		})
		first := ask(m.result + " { __typename } " + strings.Join(slices.Sorted(maps.Keys(everything)), " "))
		a.db.Fail(nil)
		for _, code := range first.codes() {
			if code != "BUSY" {
				t.Errorf("%s with every nested field failing is answered %s", m.field, first.body)
			}
		}
		if len(everything) > 0 && (failed.Load() == 0 || len(first.errors) == 0) {
			t.Errorf("%s: no nested field failed: %s", m.field, first.body)
		}
		if first.at(t, "f") == nil || first.at(t, "f."+m.result) == nil && m.field != "removeBillingExemption" {
			t.Errorf("%s with every nested field failing is answered %s", m.field, first.body)
			continue
		}
		// Then each of them alone, by the same key.
		for _, r := range types {
			for _, field := range r.def.Fields {
				name := r.def.Name + "." + field.Name
				if !lookUps[name] {
					continue
				}
				shown := "id"
				if r.def.Fields.ForName("id") == nil {
					shown = "__typename"
				}
				query := along(r.path, shown+selection(field, "__typename"))
				whole := ask(query)
				wantCodes(t, whole)
				a.db.Fail(func(ctx context.Context) bool {
					at := graphql.GetFieldContext(ctx)
					return at != nil && at.Object == r.def.Name && at.Field.Name == field.Name
				})
				broken := ask(query)
				a.db.Fail(nil)
				if len(broken.errors) == 0 && reflect.DeepEqual(broken.data, whole.data) {
					continue // there is nothing there to read for
				}
				forced[name] = true
				for _, e := range broken.errors {
					if !strings.HasSuffix(e.path(), "."+field.Name) || e.Extensions["code"] != "BUSY" {
						t.Errorf("%s of %s fails with %s at %s", name, m.field, e.Extensions["code"], e.path())
					}
				}
				if got, want := without(broken.data, field.Name), without(whole.data, field.Name); !reflect.DeepEqual(got, want) {
					t.Errorf("%s of %s takes more than itself: %s, whole: %s", name, m.field, broken.body, whole.body)
				}
				m.wantReplayed(t, ask(replayedOf(m)), true)
			}
		}
	}
	for name := range lookUps {
		if !forced[name] && forcedElsewhere[name] == "" {
			t.Errorf("%s never failed", name)
		}
	}
}

// forcedElsewhere are look-ups behind mutations that have no row to compare by its id, and the test that
// has them fail.
var forcedElsewhere = map[string]string{
	"SeriesChange.audit": "TestCase42NestedFaultsOfALedger", "SeriesChange.entries": "TestCase42NestedFaultsOfALedger",
	"LedgerLine.invoice": "TestCase42NestedFaultsOfALedger",
}

// isLookUp says of the fields of a way, in their order from a type, whether they are read for.
func isLookUp(from *ast.Definition) func(*ast.FieldDefinition) bool {
	at := from
	return func(field *ast.FieldDefinition) bool {
		name := at.Name + "." + field.Name
		at = rowsOf(field)
		return lookUps[name]
	}
}

// replayedOf asks whether a mutation was replayed, where it tells.
func replayedOf(m repeatable) string {
	if untold[strings.TrimSuffix(m.inputType, "Input")+"Payload"] != "" {
		return "__typename"
	}
	return "replayed"
}

// without is a value of an answer without the fields of a name.
func without(value any, name string) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, inner := range v {
			if key != name {
				out[key] = without(inner, name)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = without(inner, name)
		}
		return out
	}
	return value
}
