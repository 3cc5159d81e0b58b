// Package domain says what is legal: identities, money, number formats, invoices and the
// errors a caller can be told of. It does no I/O and knows no database; everything in it is a
// plain function on plain values.
//
// Its named types go through every layer: sqlc scans rows into them and gqlgen reads and
// writes them on the wire, so nothing is copied from one layer's struct into another's.
package domain
