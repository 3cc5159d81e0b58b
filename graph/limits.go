package graph

import (
	"context"
	"fmt"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/lexer"
	"github.com/vektah/gqlparser/v2/parser"

	"countersign/internal/domain"
)

// Limits bound what one request may ask for. Every count is of the document as it runs: what
// stands in a fragment counts each time the fragment is spread, and one that nothing spreads once.
type Limits struct {
	Tokens         int // of the document, with comments
	Depth          int // levels of fields and inline fragments, and apart from that of a literal value
	Fields         int // of all operations
	Aliases        int // of all operations
	RootFields     int // of a query
	MutationFields int // of a mutation: they commit one by one
	Directives     int // of all operations
	Spreads        int // of fragments: the validator compares those of a selection pair by pair
	Repeats        int // of fields under one response name in a selection: compared pair by pair, too
	Variables      int // of all operations: each use of one is searched in the list
	Selections     int // of every operation and every fragment, since the validator walks each of them
	Cost           int // statements and rows, see costOf
}

// DefaultLimits are the limits where nobody has set another: about ten times what the playground's
// introspection, the largest document that clients usually send, has.
func DefaultLimits() Limits {
	return Limits{
		Tokens: 15_000, Depth: 20, Fields: 2_000, Aliases: 100, RootFields: 20, MutationFields: 10, Directives: 50,
		Spreads: 200, Repeats: 200, Variables: 500, Selections: 10_000, Cost: 20_000,
	}
}

// limiter refuses a document that would cost too much to validate, before it is validated. It reads
// each token and visits each node of the document once.
type limiter struct {
	Limits
	accepted graphql.Cache[*ast.QueryDocument] // documents that it let through, and that are valid
}

// ExtensionName names the extension.
func (limiter) ExtensionName() string { return "Limiter" }

// Validate has nothing to check.
func (limiter) Validate(graphql.ExecutableSchema) error { return nil }

// MutateOperationParameters looks at the document, and changes nothing.
func (l limiter) MutateOperationParameters(ctx context.Context, request *graphql.RawParams) *gqlerror.Error {
	if _, known := l.accepted.Get(ctx, request.Query); known {
		return nil
	}
	_, err := l.check(request.Query)
	return err
}

// work is what looking at a document took.
type work struct{ tokens, visited int }

// check refuses a document past the limits, or one that is no GraphQL.
func (l limiter) check(text string) (did work, fault *gqlerror.Error) {
	source := &ast.Source{Input: text}
	var refusal error
	if did.tokens, refusal = l.scan(source); refusal != nil {
		return did, gqlerror.WrapPath(nil, refusal)
	}
	doc, err := parser.ParseQueryWithTokenLimit(source, l.Tokens)
	if err != nil {
		fault, ok := err.(*gqlerror.Error)
		if !ok {
			fault = gqlerror.WrapPath(nil, err)
		}
		errcode.Set(fault, errcode.ParseFailed)
		return did, fault
	}
	m := newMeter(doc)
	refusal = l.weigh(m)
	did.visited = m.visited
	if refusal != nil {
		return did, gqlerror.WrapPath(nil, refusal)
	}
	return did, nil
}

// scan counts the tokens, and looks at how deep brackets are nested: the parser recurses into them.
// What is no token is left to the parser to say.
func (l limiter) scan(source *ast.Source) (tokens int, err error) {
	brackets := 0
	for tokenizer := lexer.New(source); ; {
		token, err := tokenizer.ReadToken()
		if err != nil || token.Kind == lexer.EOF {
			return tokens, nil
		}
		if tokens++; tokens > l.Tokens {
			return tokens, exceeded("has more than %d tokens", l.Tokens)
		}
		switch token.Kind {
		case lexer.BraceL, lexer.BracketL, lexer.ParenL:
			brackets++
		case lexer.BraceR, lexer.BracketR, lexer.ParenR:
			brackets--
		}
		if brackets > 2*l.Depth+2 { // the levels of a selection, one pair of parentheses, and those of a value
			return tokens, exceeded("is nested deeper than %d levels", l.Depth)
		}
	}
}

// weigh measures the document's parts, and compares.
func (l limiter) weigh(m *meter) error {
	var all size
	selections := 0
	for _, op := range m.doc.Operations {
		s := m.operation(op)
		what, most := "query", l.RootFields
		if op.Operation == ast.Mutation {
			what, most = "mutation", l.MutationFields
		}
		if s.roots > most {
			return exceeded("has a "+what+" of more than %d root fields", most)
		}
		all, selections = all.and(s), sum(selections, s.selections)
	}
	for _, f := range m.doc.Fragments {
		reached := m.known(f)
		s, err := m.fragment(f)
		if err != nil {
			return err
		}
		if !reached {
			all = all.and(s)
		}
		selections = sum(selections, s.selections)
	}
	for _, c := range []struct {
		count, most int
		format      string
	}{
		{all.depth, l.Depth, "is nested deeper than %d levels"},
		{all.fields, l.Fields, "has more than %d fields"},
		{all.aliases, l.Aliases, "has more than %d aliases"},
		{all.directives, l.Directives, "has more than %d directives"},
		{all.spreads, l.Spreads, "spreads fragments more than %d times"},
		{all.repeats, l.Repeats, "repeats a field of the same selection more than %d times"},
		{all.variables, l.Variables, "has more than %d variables"},
		{selections, l.Selections, "has more than %d selections in its operations and fragments"},
	} {
		if c.count > c.most {
			return exceeded(c.format, c.most)
		}
	}
	return m.cyclic
}

// exceeded refuses a document.
func exceeded(format string, most int) error {
	return domain.Refuse(domain.CodeLimitExceeded, nil, "the document "+format, most)
}

// most is where counts stop: far past every limit, and far from overflowing.
const most = 1 << 40

func sum(a, b int) int { return min(a+b, most) }

func product(a, b int) int {
	if a != 0 && b > most/a {
		return most
	}
	return a * b
}

// clipped cuts a text that a client sent, and that an error quotes, to a length that can be shown.
func clipped(text string, length int) string {
	if len(text) <= length {
		return text
	}
	for length > 0 && text[length]&0xc0 == 0x80 { // not within a character
		length--
	}
	return text[:length] + "…"
}

// What a refused request is answered: a document of a megabyte must not come back as its errors.
const (
	maxErrors  = 10
	maxMessage = 200 // bytes
	maxName    = 50  // bytes of a name in an error's path
)

// few are the first of the errors of a refused request, with what they quote cut short.
func few(errors gqlerror.List) gqlerror.List {
	for _, e := range errors[:min(len(errors), maxErrors)] {
		e.Message = clipped(e.Message, maxMessage)
		for i, step := range e.Path {
			if name, ok := step.(ast.PathName); ok {
				e.Path[i] = ast.PathName(clipped(string(name), maxName))
			}
		}
		e.Locations = e.Locations[:min(len(e.Locations), maxErrors)]
	}
	if more := len(errors) - maxErrors; more > 0 {
		last := errors[maxErrors-1]
		last.Message = fmt.Sprintf("%s (and %d errors more)", last.Message, more)
		errors = errors[:maxErrors]
	}
	return errors
}
