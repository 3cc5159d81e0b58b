package graph_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math"
	"reflect"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator/core"

	"countersign/graph"
	"countersign/internal/domain"
)

// FuzzLimiter: a document costs the limiter no more than its tokens, and one that it accepts costs a
// walk of the validator no more selections than the limit.
func FuzzLimiter(f *testing.F) {
	f.Add(introspection)
	for _, b := range bombs() {
		if len(b.document) < 10_000 {
			f.Add(b.document)
		}
	}
	l := graph.DefaultLimits()
	f.Fuzz(func(t *testing.T, document string) {
		tokens, visited, err := graph.CheckDocument(document, l)
		if tokens > l.Tokens+1 || visited > tokens {
			t.Fatalf("%d tokens were read and %d nodes visited", tokens, visited)
		}
		if err != nil {
			return
		}
		doc, fault := parser.ParseQuery(&ast.Source{Input: document})
		if fault != nil {
			t.Fatalf("accepted, and yet it is no document: %v", fault)
		}
		walked := 0
		observers := &core.Events{}
		observers.OnField(func(*core.Walker, *ast.Field) { walked++ })
		observers.OnInlineFragment(func(*core.Walker, *ast.InlineFragment) { walked++ })
		observers.OnFragmentSpread(func(*core.Walker, *ast.FragmentSpread) { walked++ })
		if core.Walk(schema, doc, observers); walked > l.Selections {
			t.Fatalf("accepted, and yet the validator walks %d selections", walked)
		}
	})
}

// FuzzRequest: whatever a client sends as a document with variables, nothing panics before it runs,
// and where it is refused the answer is short.
func FuzzRequest(f *testing.F) {
	f.Add(introspection, `{}`)
	f.Add(`query ($f: InvoiceFilter, $n: Int = 3) { invoices(filter: $f, first: $n) { nodes { ...F lines { quantity } } } } fragment F on Invoice { id }`, `{"f": {"status": [null]}, "n": -0}`)
	f.Add(`query ($i: [ID!]!) { nodes(ids: $i) { ... on Order { id @skip(if: true) } } }`, `{"i": ["a", "b"]}`)
	f.Add(`mutation ($i: AllocateInvoiceInput!) { allocateInvoice(input: $i) { userErrors { code } } }`, `{"i": {"lines": {"quantity": 1}, "issueDate": 5}}`)
	f.Add(`query ($k: [[String]!], $b: Boolean) { customers(first: 1, last: 2, after: "x") @include(if: $b) { edges { node { id } } } }`, `{"k": [["x"]], "b": "true"}`)
	f.Add(`{ customers(first: {a: [1, "\u0000"]}) { x } }`, `null`)
	h := graph.NewHandler(graph.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	f.Fuzz(func(t *testing.T, document, variables string) {
		faults, err := h.Prepare(t.Context(), document, []byte(variables))
		if err != nil {
			return
		}
		text, err := json.Marshal(map[string]any{"errors": faults})
		if err != nil || len(text) > maxAnswer {
			t.Fatalf("the answer has %d bytes: %v", len(text), err)
		}
		for _, fault := range faults {
			if code := fault.Extensions["code"]; code != string(domain.CodeBadInput) && code != string(domain.CodeLimitExceeded) {
				t.Fatalf("refused with %v: %v", code, fault)
			}
		}
	})
}

// FuzzJSON: what the decoder takes is what encoding/json reads, to the last digit, and nothing that
// encoding/json does not take.
func FuzzJSON(f *testing.F) {
	for _, text := range []string{`{"a": [1, -0, 1.50, "\ud83d\ude00", null, true], "b": {}}`, `{"a": 1, "a": 2}`, `[[]]]`, `"\ud800"`, "\"\xff\"", ` 1 `, `1 2`, `-0.0`, `{"\u0061": 1, "a": 2}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := graph.DecodeJSON(text)
		if err != nil {
			return
		}
		var want any
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&want); err != nil {
			t.Fatalf("taken, and encoding/json says %v", err)
		}
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			t.Fatal("taken with something behind it")
		}
		if want = signedZeros(want); !reflect.DeepEqual(got, want) {
			t.Fatalf("read as %#v, by encoding/json as %#v", got, want)
		}
	})
}

// signedZeros makes each -0 the float that the decoder makes of it.
func signedZeros(value any) any {
	switch v := value.(type) {
	case json.Number:
		if v == "-0" {
			return math.Copysign(0, -1)
		}
	case []any:
		for i := range v {
			v[i] = signedZeros(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = signedZeros(v[name])
		}
	}
	return value
}

// FuzzCursor: a cursor that a list takes is one that this list prints, and no other list takes it.
func FuzzCursor(f *testing.F) {
	for _, cursor := range []string{"", "Y3VzdG9tZXI6MDEyMzQ1Njc4OWFiY2RlZg", "bnVtYmVyOgAAAABn1RQAAAAAAAAAAAE", "aW52b2ljZTowMTIzNDU2Nzg5YWJjZGVm", "bnVtYmVyOv____________________8"} {
		f.Add(cursor)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		lists := graph.Cursors(cursor)
		if len(lists) > 1 {
			t.Fatalf("%v take %q", lists, cursor)
		}
		for list, printed := range lists {
			if printed != cursor {
				t.Fatalf("%s takes %q, and prints %q", list, cursor, printed)
			}
		}
	})
}
