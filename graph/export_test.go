package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"
)

// CheckDocument is what the limiter says of a document, and how many tokens it read and nodes it
// visited to say so.
func CheckDocument(text string, l Limits) (tokens, visited int, err error) {
	did, fault := limiter{Limits: l}.check(text)
	if fault != nil {
		return did.tokens, did.visited, fault
	}
	return did.tokens, did.visited, nil
}

// DecodeJSON reads a JSON value as a body is read.
func DecodeJSON(text []byte) (any, error) { return decodeJSON("the text", text) }

// Prepare does with a document and its variables, a JSON object, whatever is done before a request
// runs. The faults are as a client is told them.
func (h *Handler) Prepare(ctx context.Context, document string, variables []byte) (faults gqlerror.List, err error) {
	request := &graphql.RawParams{Query: document}
	value, err := decodeJSON("variables", variables)
	if err != nil {
		return nil, err
	}
	request.Variables, _ = value.(map[string]any)
	ctx = graphql.StartOperationTrace(ctx)
	op, faults := h.exec.CreateOperationContext(ctx, request)
	if faults == nil {
		return nil, nil
	}
	return h.exec.DispatchError(graphql.WithOperationContext(ctx, op), few(faults)).Errors, nil
}

// Cursors reads a cursor as each list would, and prints it again; "" where it is refused.
func Cursors(cursor string) map[string]string {
	out := map[string]string{}
	again(out, customerKeys, cursor)
	again(out, invoiceKeys, cursor)
	again(out, apiKeyKeys, cursor)
	again(out, numberKeys, cursor)
	again(out, ledgerKeys, cursor)
	return out
}

func again[K any](out map[string]string, k keys[K], cursor string) {
	if key, err := k.parse("after", cursor); err == nil {
		out[k.list] = k.cursor(key)
	}
}
