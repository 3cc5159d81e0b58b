package graph_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"countersign/graph"
	"countersign/internal/config"
	"countersign/internal/testdb"
)

// maxAnswer is the most bytes a refused request is answered with.
const maxAnswer = 16 << 10

// many repeats a pattern, %d being its number from 1.
func many(n int, pattern string) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		b.WriteString(strings.ReplaceAll(pattern, "%d", fmt.Sprint(i)))
	}
	return b.String()
}

// limit is a limit of a document: document(n) has n of what is counted, and is valid.
type limit struct {
	name     string
	most     int
	words    string // what the refusal says
	document func(n int) string
}

func limits(of *tenant) []limit {
	l := graph.DefaultLimits()
	customer := `customer(id: "` + of.customerID + `")`
	deep := func(n int) string { // customers(1) nodes(2) invoices(3) nodes(4) customer(5) invoices(6) …
		levels := []string{"invoices(first: 1)", "nodes", "customer"}
		open := "{ customers(first: 1) { nodes {"
		for i := range n - 3 {
			open += levels[i%3] + " {"
		}
		return open + " __typename" + strings.Repeat("}", n)
	}
	made := func(n int) string {
		return many(n, ` m%d: createCustomer(input: {name: "N%d", currency: "EUR"}) { replayed }`)
	}
	return []limit{
		{"tokens", l.Tokens, "15000 tokens", func(n int) string { return "{ __typename }" + strings.Repeat("#\n", n-3) }},
		{"depth", l.Depth, "deeper than 20 levels", deep},
		{"depth of inline fragments", l.Depth, "deeper than 20 levels", func(n int) string {
			return "{" + strings.Repeat("... {", n-1) + "__typename" + strings.Repeat("}", n)
		}},
		{"depth in fragments", l.Depth, "deeper than 20 levels", func(n int) string {
			return "{" + strings.Repeat("... {", n-3) + " customers(first: 1) { ...F } " + strings.Repeat("}", n-2) + " fragment F on CustomerConnection { ...G } fragment G on CustomerConnection { nodes { id } }"
		}},
		{"fields", l.Fields, "2000 fields", func(n int) string { // one, ten in each fragment, and the rest
			return "{" + customer + "{" + many((n-1)/10, " ...C") + many((n-1)%10, " name") + "}} fragment C on Customer" +
				"{ id name email currency timeZone createdAt version __typename exemption { reason } }"
		}},
		{"aliases", l.Aliases, "100 aliases", func(n int) string { return "{" + customer + "{" + many(n, " a%d: name") + "}}" }},
		{"aliases in fragments", l.Aliases, "100 aliases", func(n int) string {
			return "{" + customer + "{" + many(n/2, " ...F") + many(n%2, " z: id") + "}} fragment F on Customer { a: name b: email }"
		}},
		{"root fields of a query", l.RootFields, "query of more than 20 root fields", func(n int) string { return "{" + many(n, " a%d: __typename") + "}" }},
		{"root fields of a mutation", l.MutationFields, "mutation of more than 10 root fields", func(n int) string { return "mutation {" + made(n) + "}" }},
		{"root fields of a mutation, inline", l.MutationFields, "mutation of more than 10 root fields", func(n int) string {
			return "mutation { ... {" + made(5) + "} ... on Mutation { ... {" + strings.ReplaceAll(made(n-5), " m", " n") + "}}}"
		}},
		{"root fields of a mutation, in fragments", l.MutationFields, "mutation of more than 10 root fields", func(n int) string {
			return "mutation { ...F } fragment F on Mutation {" + made(5) + " ...G } fragment G on Mutation {" + strings.ReplaceAll(made(n-5), " m", " n") + "}"
		}},
		{"directives", l.Directives, "50 directives", func(n int) string { return "{" + customer + "{ id" + many(n, " name @include(if: true)") + "}}" }},
		{"directives in fragments", l.Directives, "50 directives", func(n int) string {
			return "{" + customer + "{ id" + many(n/2, " ...F") + many(n%2, " email @include(if: true)") + "}} fragment F on Customer { name @include(if: true) currency @skip(if: false) }"
		}},
		{"spreads", l.Spreads, "more than 200 times", func(n int) string {
			return "{" + customer + "{" + many(n, " ...F") + "}} fragment F on Customer { id }"
		}},
		{"repeats", l.Repeats, "repeats a field of the same selection more than 200 times", func(n int) string {
			return "{" + customer + "{ id" + many(n, " id") + "}}"
		}},
		{"repeats in inline fragments", l.Repeats, "repeats a field of the same selection more than 200 times", func(n int) string {
			return "{" + customer + "{ id" + many(n, " ... { id }") + "}}"
		}},
		{"variables", l.Variables, "500 variables", func(n int) string {
			doc := "query (" + many(n, ` $v%d: ID! = "`+of.customerID+`"`) + ") {"
			for i := 1; i <= n; i += 100 {
				doc += fmt.Sprintf(" a%d: nodes(ids: [", i)
				for j := i; j < min(i+100, n+1); j++ {
					doc += fmt.Sprintf(" $v%d", j)
				}
				doc += "]) { id }"
			}
			return doc + "}"
		}},
		{"selections", l.Selections, "10000 selections", func(n int) string { // a chain of 99 is walked from each of its links: (99 + 1)² selections
			return "{" + customer + "{ ...F1" + many(n-10_000, " name") + "}}" + chain(99)
		}},
	}
}

// chain is n fragments that each spread the next.
func chain(n int) (out string) {
	for i := 1; i < n; i++ {
		out += fmt.Sprintf(" fragment F%d on Customer { id ...F%d }", i, i+1)
	}
	return out + fmt.Sprintf(" fragment F%d on Customer { id }", n)
}

// TestLimits: what has exactly as many as may be is answered; one more is refused with the limit's
// name and value, in a short answer, without an effect.
func TestLimits(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, l := range limits(a.demo) {
		t.Run(l.name, func(t *testing.T) {
			if r := a.do(t, a.demo.admin, l.document(l.most), nil); r.status != 200 || len(r.errors) > 0 {
				t.Errorf("with %d it is answered %d %.500s", l.most, r.status, r.body)
			}
			before := a.rows(t)
			r := a.do(t, a.demo.admin, l.document(l.most+1), nil)
			wantLimitExceeded(t, r, l.words)
			if a.rows(t) != before {
				t.Error("what was refused had an effect")
			}
			if len(r.errors) > 0 && r.data == nil {
				return
			}
			t.Errorf("with %d it is answered %.500s", l.most+1, r.body)
		})
	}
	a.must(t, a.demo.admin, introspection, nil)
	l := graph.DefaultLimits()
	for l.Depth = 1; ; l.Depth++ {
		if _, _, err := graph.CheckDocument(introspection, l); err == nil {
			break
		}
	}
	if l.Depth != 15 { // as the configuration's description says
		t.Errorf("the playground's introspection has %d levels", l.Depth)
	}
}

// wantLimitExceeded fails unless the request was refused by a limit, in a short answer.
func wantLimitExceeded(t testing.TB, r response, words string) {
	t.Helper()
	wantCodes(t, r, "LIMIT_EXCEEDED")
	if len(r.body) > maxAnswer || r.data != nil || len(r.errors) == 1 && !strings.Contains(r.errors[0].Message, words) {
		t.Errorf("want %q in at most %d bytes, got %d: %.500s", words, maxAnswer, len(r.body), r.body)
	}
}

// TestLimitsAreSettings: a server can be given other limits, lower and higher.
func TestLimitsAreSettings(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(_ *testdb.DB, o *graph.Options) {
		l := graph.DefaultLimits()
		l.MutationFields, l.Aliases = 12, 3
		o.Limits = &l
	})
	for _, l := range limits(a.demo) {
		switch l.name {
		case "root fields of a mutation":
			wantLimitExceeded(t, a.do(t, a.demo.admin, l.document(13), nil), "12 root fields")
		case "aliases":
			a.must(t, a.demo.admin, l.document(3), nil)
			wantLimitExceeded(t, a.do(t, a.demo.admin, l.document(4), nil), "3 aliases")
		}
	}
}

// bombs are documents that are small to send and would be dear to validate or to run.
func bombs() map[string]struct{ document, code, words string } {
	doubling := "{ ...F1 }"
	for i := 1; i < 26; i++ {
		doubling += fmt.Sprintf(" fragment F%d on Query { ...F%d ...F%d }", i, i+1, i+1)
	}
	withFields := strings.ReplaceAll(doubling, "{ ...F", "{ a: __typename ...F")
	many100 := func(n int) string { return many(n, " query q%d { customers { nodes { ...F } } }") }
	return map[string]struct{ document, code, words string }{
		"directives":                               {"{ __typename " + strings.Repeat("@aa", 100_000) + " }", "LIMIT_EXCEEDED", "15000 tokens"},
		"1,000 directives":                         {"{ __typename " + strings.Repeat("@aa", 1000) + " }", "LIMIT_EXCEEDED", "50 directives"},
		"directives on an operation":               {"query " + strings.Repeat("@aa", 51) + " { __typename }", "LIMIT_EXCEEDED", "50 directives"},
		"directives on a variable":                 {"query ($a: Int " + strings.Repeat("@aa", 51) + ") { __typename }", "LIMIT_EXCEEDED", "50 directives"},
		"directives on a fragment":                 {"{ ...F } fragment F on Query " + strings.Repeat("@aa", 51) + " { __typename }", "LIMIT_EXCEEDED", "50 directives"},
		"directives on an unused fragment":         {"{ __typename } fragment F on Query { __typename " + strings.Repeat("@aa", 51) + " }", "LIMIT_EXCEEDED", "50 directives"},
		"one field 20,000 times":                   {"{" + strings.Repeat(" id", 20_000) + "}", "LIMIT_EXCEEDED", "15000 tokens"},
		"one field 14,000 times":                   {"{ customers {" + strings.Repeat(" id", 14_000) + "}}", "LIMIT_EXCEEDED", "2000 fields"},
		"one field 2,000 times":                    {"{" + strings.Repeat(" __typename", 2000) + "}", "LIMIT_EXCEEDED", "20 root fields"},
		"one field 1,900 times, not root":          {"{ customers {" + strings.Repeat(" id", 1900) + "}}", "LIMIT_EXCEEDED", "more than 200 times"},
		"the same in inline fragments":             {"{ customers {" + strings.Repeat(" ... { id }", 1900) + "}}", "LIMIT_EXCEEDED", "more than 200 times"},
		"doubling fragments":                       {doubling + " fragment F26 on Query { __typename }", "LIMIT_EXCEEDED", "root fields"},
		"doubling fragments, with fields":          {withFields + " fragment F26 on Query { __typename }", "LIMIT_EXCEEDED", "root fields"},
		"doubling fragments, unused":               {"{ __typename }" + strings.TrimPrefix(doubling, "{ ...F1 }") + " fragment F26 on Query { __typename }", "LIMIT_EXCEEDED", "fields"},
		"nesting that fits the body":               {strings.Repeat("{a", (graph.MaxBody-60)/2), "LIMIT_EXCEEDED", "20 levels"},
		"nested lists":                             {"{ customers(first: " + strings.Repeat("[", 500_000) + ") }", "LIMIT_EXCEEDED", "20 levels"},
		"nested lists of 21 levels":                {"{ customers(first: " + strings.Repeat("[", 21) + strings.Repeat("]", 21) + ") { nodes { id } } }", "LIMIT_EXCEEDED", "20 levels"},
		"nested objects":                           {"{ customers(first: " + strings.Repeat("{a:", 300_000) + ") }", "LIMIT_EXCEEDED", "20 levels"},
		"nested types":                             {"query ($v: " + strings.Repeat("[", 500_000) + ") { __typename }", "LIMIT_EXCEEDED", "20 levels"},
		"nested inline fragments":                  {"{" + strings.Repeat("...{", 200_000), "LIMIT_EXCEEDED", "20 levels"},
		"fragments in a chain":                     {"{ customers { nodes { ...F1 }}}" + chain(1000), "LIMIT_EXCEEDED", ""},
		"a fragment in itself":                     {"{ ...F } fragment F on Query { ...F }", "BAD_INPUT", "fragment F spreads itself"},
		"a fragment in itself, unused":             {"{ __typename } fragment F on Query { __typename ...F }", "BAD_INPUT", "fragment F spreads itself"},
		"a cycle of three":                         {"{ ...A } fragment A on Query { ...B } fragment B on Query { ... { ...C } } fragment C on Query { __typename ...A ...A }", "BAD_INPUT", "spreads itself"},
		"a long cycle":                             {"{ ...F1 }" + chain(900) + " fragment F901 on Customer { ...F1 }", "LIMIT_EXCEEDED", ""},
		"unused variables":                         {"query (" + many(3000, " $v%d: Int") + ") { __typename }", "LIMIT_EXCEEDED", "500 variables"},
		"unused fragments":                         {"{ __typename }" + many(2100, " fragment F%d on Query { __typename }"), "LIMIT_EXCEEDED", "2000 fields"},
		"root fields of one of several operations": {"query q { __typename } mutation m {" + many(11, ` m%d: createCustomer(input: {name: "N", currency: "EUR"}) { replayed }`) + "}", "LIMIT_EXCEEDED", "10 root fields"},
		"many operations":                          {many100(500) + " fragment F on Customer { id name email currency timeZone version }", "LIMIT_EXCEEDED", ""},
		"many small operations":                    {many(2500, " query q%d { id }"), "LIMIT_EXCEEDED", "2000 fields"},
		"only comments":                            {strings.Repeat("#\n", 300_000), "LIMIT_EXCEEDED", "15000 tokens"},
	}
}

// TestBombs: none of them costs more than reading so many tokens as a document may have, and
// visiting each of its nodes once; each is answered in a few bytes, and the server lives.
func TestBombs(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for name, b := range bombs() {
		t.Run(name, func(t *testing.T) {
			r := a.do(t, a.demo.admin, b.document, nil)
			wantCodes(t, r, b.code)
			if len(r.errors) != 1 || !strings.Contains(r.errors[0].Message, b.words) || len(r.body) > 1000 || r.data != nil {
				t.Errorf("answered %.1000s", r.body)
			}
			most := graph.DefaultLimits().Tokens
			tokens, visited, err := graph.CheckDocument(b.document, graph.DefaultLimits())
			if err == nil || tokens > most+1 || visited > tokens {
				t.Errorf("%d tokens were read, %d nodes visited: %v", tokens, visited, err)
			}
		})
	}
	if r := a.do(t, a.demo.admin, strings.Repeat("{a", 3_000_000), nil); r.status != 413 || strings.Join(r.codes(), " ") != "LIMIT_EXCEEDED" || len(r.body) > 1000 {
		t.Errorf("nesting of 3,000,000 is answered %d %.500s", r.status, r.body)
	}
	a.must(t, a.demo.admin, `{ __typename }`, nil)
}

// TestShortRefusals: however many faults a document has, and however long the names in them, a
// request that is refused is answered in at most 16 KiB, and told how many faults there are.
func TestShortRefusals(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	long := strings.Repeat("x", 500_000)
	ugly := strings.Repeat(`<&>\u0001`, 20_000)
	for name, c := range map[string]struct {
		document  string
		variables vars
		words     string
	}{
		"unused variables":          {"query (" + many(500, " $v%d: Int") + ") { __typename }", nil, "(and 490 errors more)"},
		"unknown fields":            {"{ customers { nodes {" + many(1900, " x%d") + "}}}", nil, "errors more)"},
		"unknown arguments":         {"{ customers(" + many(3000, " x%d: 1") + ") { nodes { id } } }", nil, "errors more)"},
		"unknown types":             {"query (" + many(400, " $v%d: Nope%d") + ") { __typename }", nil, "errors more)"},
		"a long field":              {"{ " + long + " }", nil, "…"},
		"a long alias twice":        {"{ customers { nodes { " + long + ": id " + long + ": name } } }", nil, "…"},
		"a long argument":           {"{ customers(" + long + ": 1) { nodes { id } } }", nil, "…"},
		"a long value":              {`{ customers(first: "` + long + `") { nodes { id } } }`, nil, "…"},
		"an ugly value":             {`{ customers(first: "` + ugly + `") { nodes { id } } }`, nil, "…"},
		"many ugly values":          {`{ customers(first: [` + many(40, ` "`+ugly[:len(ugly)/50]+`"`) + `]) { nodes { id } } }`, nil, ""},
		"a long type":               {"query ($v: " + long + ") { customers(first: $v) { nodes { id } } }", nil, "…"},
		"a long directive":          {"{ __typename @" + long + " }", nil, "…"},
		"a long fragment":           {"{ ..." + long + " }", nil, "…"},
		"a long cyclic fragment":    {"{ __typename } fragment " + long + " on Query { ..." + long + " }", nil, "…"},
		"a long token":              {"{ a(b: " + `"\u12` + long + `"`, nil, ""},
		"unused fragments":          {"{ __typename }" + many(1500, " fragment F%d on Query { __typename }"), nil, "(and 1490 errors more)"},
		"a long variable":           {"query ($" + long + ": Int!) { customers(first: $" + long + ") { nodes { id } } }", nil, ""},
		"a long key":                {"query ($f: InvoiceFilter) { invoices(filter: $f) { nodes { id } } }", vars{"f": vars{long: 1}}, ""},
		"a deep variable":           {"query ($n: Int) { customers(first: $n) { nodes { id } } }", vars{"n": json.RawMessage(strings.Repeat("[", 90) + strings.Repeat("]", 90))}, ""},
		"a deep variable of a type": {"query ($n: " + strings.Repeat("[", 19) + "Int" + strings.Repeat("]", 19) + ") { customers(first: $n) { nodes { id } } }", vars{"n": json.RawMessage(strings.Repeat("[", 90) + strings.Repeat("]", 90))}, ""},
		"a long enum":               {"query ($f: InvoiceFilter) { invoices(filter: $f) { nodes { id } } }", vars{"f": vars{"status": long}}, "…"},
	} {
		r := a.do(t, a.demo.admin, c.document, c.variables)
		if len(r.errors) == 0 || len(r.body) > maxAnswer || r.data != nil {
			t.Errorf("%s: answered in %d bytes: %.300s", name, len(r.body), r.body)
			continue
		}
		if last := r.errors[len(r.errors)-1]; !strings.Contains(last.Message, c.words) {
			t.Errorf("%s: the last error is %.300s, want %q", name, last.Message, c.words)
		}
		for _, code := range r.codes() {
			if code != "BAD_INPUT" {
				t.Errorf("%s: answered %s", name, code)
			}
		}
	}
	r := a.send(t, "POST", "", a.demo.admin, header("Content-Type", "application/json"), `{"query": "{ __typename }", "operationName": "`+long+`"}`)
	if wantCodes(t, r, "BAD_INPUT"); len(r.body) > maxAnswer {
		t.Errorf("a long operationName is answered in %d bytes", len(r.body))
	}
	if longest := slices.MaxFunc(strings.Split(a.log.String(), "\n"), func(a, b string) int { return len(a) - len(b) }); len(longest) > 4096 {
		t.Errorf("the log has a line of %d bytes: %.300s", len(longest), longest)
	}
}

// introspection is what the playground asks at its start.
var introspection = `query IntrospectionQuery {
	__schema {
		description
		queryType { name kind } mutationType { name kind } subscriptionType { name kind }
		types { ...FullType }
		directives { name description isRepeatable locations args(includeDeprecated: true) { ...InputValue } }
	}
}
fragment FullType on __Type {
	kind name description specifiedByURL isOneOf
	fields(includeDeprecated: true) { name description args(includeDeprecated: true) { ...InputValue } type { ...TypeRef } isDeprecated deprecationReason }
	inputFields(includeDeprecated: true) { ...InputValue }
	interfaces { ...TypeRef }
	enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason }
	possibleTypes { ...TypeRef }
}
fragment InputValue on __InputValue { name description type { ...TypeRef } defaultValue isDeprecated deprecationReason }
fragment TypeRef on __Type {` + strings.Repeat(" kind name ofType {", 9) + " kind name " + strings.Repeat("}", 10)

// TestSettingsHaveTheDefaults: what the configuration says where nobody has set it is what the
// limits are by themselves, and what the documentation says.
func TestSettingsHaveTheDefaults(t *testing.T) {
	t.Parallel()
	c, err := config.Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	l := graph.DefaultLimits()
	told, err := os.ReadFile("../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, is := range map[string][2]int{
		"COUNTERSIGN_MAX_COST": {c.MaxCost, l.Cost}, "COUNTERSIGN_MAX_MUTATIONS": {c.MaxMutations, l.MutationFields},
		"COUNTERSIGN_MAX_ROOT_FIELDS": {c.MaxRootFields, l.RootFields}, "COUNTERSIGN_MAX_ALIASES": {c.MaxAliases, l.Aliases},
		"COUNTERSIGN_MAX_DEPTH": {c.MaxDepth, l.Depth},
	} {
		if is[0] != is[1] || !regexp.MustCompile(fmt.Sprintf("%d \\| `%s`", is[1], name)).Match(told) {
			t.Errorf("%s is %d, the limit %d, or docs/limits.md says another", name, is[0], is[1])
		}
	}
	for _, most := range []int{l.Tokens, l.Fields, l.Directives, l.Spreads, l.Repeats, l.Variables, l.Selections, maxAnswer, graph.MaxBody} {
		if !strings.Contains(string(told), fmt.Sprintf("| %d |", most)) {
			t.Errorf("docs/limits.md does not tell of %d", most)
		}
	}
}
