package graph_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"countersign/graph"
)

// BenchmarkLimiter is what it takes to refuse each of the bombs.
func BenchmarkLimiter(b *testing.B) {
	all := bombs()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		document := all[name].document
		b.Run(strings.ReplaceAll(name, " ", "_"), func(b *testing.B) {
			for b.Loop() {
				if _, _, err := graph.CheckDocument(document, graph.DefaultLimits()); err == nil {
					b.Fatal("accepted")
				}
			}
		})
	}
}

// BenchmarkLimiterAccepts is what the limiter takes for what clients send, and parsing and validating
// for the dearest documents that it lets through.
func BenchmarkLimiterAccepts(b *testing.B) {
	b.Run("introspection", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := graph.CheckDocument(introspection, graph.DefaultLimits()); err != nil {
				b.Fatal(err)
			}
		}
	})
	exec := executor.New(graph.NewExecutableSchema(graph.Config{}))
	exec.SetDefaultRulesFn(rules.NewDefaultRules)
	for name, document := range dearest() {
		if _, _, err := graph.CheckDocument(document, graph.DefaultLimits()); err != nil {
			b.Errorf("%s is refused: %v", name, err)
		}
		b.Run("then_validated/"+name, func(b *testing.B) {
			for b.Loop() {
				ctx := graphql.StartOperationTrace(context.Background())
				_, _ = exec.CreateOperationContext(ctx, &graphql.RawParams{Query: document})
			}
		})
	}
}

// dearest are documents within the limits that take the validator longest: pairs of fields, pairs of
// fragments, walks of one fragment from many, uses of many variables.
func dearest() map[string]string {
	wide := "id name email currency timeZone createdAt version __typename"
	return map[string]string{
		"repeats":         "{ customers { nodes { id" + strings.Repeat(" id", 200) + "}}}",
		"repeated_levels": "{ customers { nodes {" + strings.Repeat(" invoices { nodes {"+strings.Repeat(" customer { id name }", 8)+"}}", 23) + "}}}",
		"spreads":         "{ customers { nodes {" + many(100, " ...F%d") + "}}}" + many(100, " fragment F%d on Customer { "+wide+" }"),
		"fragment_levels": "{ customers { nodes {" + many(100, " ...F%d") + "}}}" + many(100, " fragment F%d on Customer { invoices { nodes { customer { id name email } number total { amountMinor } } pageInfo { startCursor endCursor } } }"),
		"chain":           "{ customers { nodes { ...F1 }}}" + chain(98),
		"variables":       "query (" + many(500, " $v%d: String") + ") { customers(" + many(2400, " after: $v%d") + ") { nodes { id } } }",
		"arguments":       "{ customers(" + many(1800, " a%d: 1") + ") { nodes { id } } customers(" + many(1800, " a%d: 1") + ") { nodes { id } } }",
		"operations":      many(20, " query q%d { customers { nodes { ...F } } }") + " fragment F on Customer {" + many(90, " x%d") + "}",
	}
}
