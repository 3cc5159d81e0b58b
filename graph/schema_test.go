package graph_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"

	"countersign/graph"
)

// TestEverythingIsDescribed: whoever explores the schema reads what each type, field, argument,
// value and directive is for.
func TestEverythingIsDescribed(t *testing.T) {
	t.Parallel()
	described := func(what, description string) {
		if strings.TrimSpace(description) == "" {
			t.Errorf("%s has no description", what)
		}
	}
	for _, def := range schema.Types {
		if def.BuiltIn {
			continue
		}
		described(def.Name, def.Description)
		for _, field := range fields(def) {
			described(def.Name+"."+field.Name, field.Description)
			for _, argument := range field.Arguments {
				described(def.Name+"."+field.Name+"("+argument.Name+":)", argument.Description)
			}
		}
		for _, value := range def.EnumValues {
			described(def.Name+"."+value.Name, value.Description)
		}
	}
	for _, directive := range schema.Directives {
		if directive.Position != nil && directive.Position.Src != nil && directive.Position.Src.BuiltIn {
			continue
		}
		described("@"+directive.Name, directive.Description)
		for _, argument := range directive.Arguments {
			described("@"+directive.Name+"("+argument.Name+":)", argument.Description)
		}
	}
}

// TestNames: the schema keeps one manner of naming, which clients can rely on.
func TestNames(t *testing.T) {
	t.Parallel()
	camel, pascal, screaming := regexp.MustCompile(`^[a-z][A-Za-z0-9]*$`), regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`), regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)
	for _, def := range schema.Types {
		if def.BuiltIn {
			continue
		}
		if !pascal.MatchString(def.Name) {
			t.Errorf("the type %s is not in PascalCase", def.Name)
		}
		for _, field := range fields(def) {
			if !camel.MatchString(field.Name) {
				t.Errorf("%s.%s is not in camelCase", def.Name, field.Name)
			}
			if money := regexp.MustCompile(`(?i)amount|price|total|minor`); money.MatchString(field.Name) && slices.Contains([]string{"Int", "Float"}, field.Type.Name()) {
				t.Errorf("%s.%s is money and travels as %s", def.Name, field.Name, field.Type.Name())
			}
			if field.Type.Name() == "Float" {
				t.Errorf("%s.%s is a Float, which holds nothing exactly", def.Name, field.Name)
			}
		}
		for _, value := range def.EnumValues {
			if !screaming.MatchString(value.Name) {
				t.Errorf("%s.%s is not in SCREAMING_SNAKE_CASE", def.Name, value.Name)
			}
		}
	}
}

// TestConnections: every list that can grow is a connection, and every connection is of one shape.
func TestConnections(t *testing.T) {
	t.Parallel()
	found := 0
	for _, def := range schema.Types {
		if name, is := strings.CutSuffix(def.Name, "Connection"); is {
			found++
			node := strings.TrimSuffix(strings.TrimPrefix(def.Fields.ForName("nodes").Type.String(), "["), "!]!")
			wantShape(t, def, "edges: ["+name+"Edge!]!", "nodes: ["+node+"!]!", "pageInfo: PageInfo!")
			wantShape(t, schema.Types[name+"Edge"], "cursor: String!", "node: "+node+"!")
		}
		for _, field := range fields(def) {
			arguments := shape(field.Arguments)
			if strings.HasSuffix(field.Type.Name(), "Connection") {
				if field.Type.NonNull != (def == schema.Query) || !strings.HasSuffix(arguments, "first: Int, after: String, last: Int, before: String") {
					t.Errorf("%s.%s(%s): %s is no connection's field", def.Name, field.Name, arguments, field.Type)
				}
			} else if strings.Contains(arguments, "first:") || strings.Contains(arguments, "last:") {
				t.Errorf("%s.%s(%s) pages, and is no connection", def.Name, field.Name, arguments)
			}
		}
	}
	if found == 0 {
		t.Error("the schema has no connections")
	}
	wantShape(t, schema.Types["PageInfo"], "hasNextPage: Boolean!", "hasPreviousPage: Boolean!", "startCursor: String", "endCursor: String")
}

// TestMutations: a mutation is a verb with one required input of its own and a payload of its own,
// which may be null, so that a failing one hides nothing of what another committed.
func TestMutations(t *testing.T) {
	t.Parallel()
	for _, field := range fields(schema.Mutation) {
		name := strings.ToUpper(field.Name[:1]) + field.Name[1:]
		if got := shape(field.Arguments) + " → " + field.Type.String(); got != "input: "+name+"Input! → "+name+"Payload" {
			t.Errorf("%s is %s", field.Name, got)
			continue
		}
		if key := schema.Types[name+"Input"].Fields.ForName("idempotencyKey"); key == nil || key.Type.String() != "String" && name != "PlaceOrder" {
			t.Errorf("%sInput has no optional idempotencyKey", name)
		}
		payload := schema.Types[name+"Payload"]
		if replayed := payload.Fields.ForName("replayed"); (replayed == nil) != (untold[name+"Payload"] != "") || replayed != nil && replayed.Type.String() != "Boolean!" {
			t.Errorf("%s does not say whether it was replayed", payload.Name)
		}
		if errors := payload.Fields.ForName("userErrors"); errors == nil || errors.Type.String() != "[UserError!]!" {
			t.Errorf("%s has no userErrors", payload.Name)
		}
		for _, result := range payload.Fields {
			if result.Type.NonNull && !slices.Contains([]string{"userErrors", "replayed"}, result.Name) && schema.Types[result.Type.Name()].Kind == ast.Object && result.Type.Elem == nil {
				t.Errorf("%s.%s cannot be null, and there is none beside a user error", payload.Name, result.Name)
			}
		}
	}
}

// untold are the payloads that do not say whether they were replayed, each for a reason.
var untold = map[string]string{
	"RevokeApiKeyPayload": "a key is revoked once, and whoever asks again, with whatever key, is answered the same",
	"RecordUsagePayload":  "each event has an id of its own, and says by it whether it is new",
}

// TestLinksAreNullable: a field that another type with an id is read for may be null, so that a
// failing look-up cannot hide a committed result. A list of what belongs to the row is part of it.
func TestLinksAreNullable(t *testing.T) {
	t.Parallel()
	for _, def := range schema.Types {
		for _, field := range fields(def) {
			target := schema.Types[field.Type.Name()]
			if slices.Contains(def.Interfaces, "Node") && target.Kind == ast.Object && slices.Contains(target.Interfaces, "Node") && field.Type.NonNull && field.Type.Elem == nil {
				t.Errorf("%s.%s cannot be null", def.Name, field.Name)
			}
		}
	}
}

// TestPrintedSchema: the one file that client generators read is the schema that the server has.
func TestPrintedSchema(t *testing.T) {
	t.Parallel()
	printed, err := gqlparser.LoadSchema(&ast.Source{Name: "schema.graphql", Input: graph.SDL()})
	if err != nil {
		t.Fatalf("the printed schema cannot be read: %v", err)
	}
	if len(printed.Types) != len(schema.Types) {
		t.Errorf("the printed schema has %d types, the server %d", len(printed.Types), len(schema.Types))
	}
	for name, def := range schema.Types {
		if other := printed.Types[name]; other == nil || shapeOf(other) != shapeOf(def) || other.Description != def.Description {
			t.Errorf("the printed schema has another %s", name)
		}
	}
}

// shape prints arguments as the schema does.
func shape(arguments ast.ArgumentDefinitionList) string {
	parts := make([]string, len(arguments))
	for i, a := range arguments {
		parts[i] = a.Name + ": " + a.Type.String()
	}
	return strings.Join(parts, ", ")
}

func shapeOf(def *ast.Definition) string {
	parts := []string{string(def.Kind)}
	for _, field := range fields(def) {
		parts = append(parts, field.Name+"("+shape(field.Arguments)+"): "+field.Type.String())
	}
	for _, value := range def.EnumValues {
		parts = append(parts, value.Name)
	}
	return strings.Join(parts, "\n")
}

func wantShape(t *testing.T, def *ast.Definition, want ...string) {
	t.Helper()
	if def == nil {
		t.Errorf("the schema lacks a type with %q", want)
		return
	}
	var got []string
	for _, field := range fields(def) {
		got = append(got, field.Name+": "+field.Type.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s has %q, want %q", def.Name, got, want)
	}
}
