package graph

import (
	"strings"

	"github.com/vektah/gqlparser/v2/formatter"
)

// SDL is the schema as one printed file, for client generators.
func SDL() string {
	var b strings.Builder
	formatter.NewFormatter(&b, formatter.WithIndent("  ")).FormatSchema(parsedSchema)
	return b.String()
}
