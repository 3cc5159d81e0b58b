// Package migrations holds the schema's history: numbered, forward only, each opening with why.
package migrations

import "embed"

// Files are the migrations, for goose.
//
//go:embed *.sql
var Files embed.FS
