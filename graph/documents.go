package graph

import (
	"context"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler/lru"
	"github.com/vektah/gqlparser/v2/ast"

	"countersign/internal/auth"
)

// What is kept of the documents that clients send again and again, so that they are read once.
const (
	maxDocuments = 256
	maxDocument  = 16 << 10 // bytes: a parsed document can take a hundred times its text
)

// documents keeps valid documents by their text: those of callers that are known, so that nobody
// else can fill the memory with them, and none that is very long.
type documents struct {
	graphql.Cache[*ast.QueryDocument]
}

func newDocuments() documents { return documents{lru.New[*ast.QueryDocument](maxDocuments)} }

// Add keeps a document.
func (d documents) Add(ctx context.Context, text string, doc *ast.QueryDocument) {
	if _, known := auth.From(ctx); known && len(text) <= maxDocument {
		d.Cache.Add(ctx, text, doc)
	}
}
