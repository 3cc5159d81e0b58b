// Package graph is the wire: the schema, one file per noun, and resolvers of a few lines that call
// a use case, check, and wrap. It knows no rules of the business.
package graph

import (
	"countersign/internal/auth"
	"countersign/internal/invoicing"
	"countersign/internal/metering"
	"countersign/internal/ordering"
	"countersign/internal/txn"
)

// Resolver holds what the resolvers call.
type Resolver struct {
	DB        *txn.DB
	Tokens    *auth.Tokens
	Invoicing *invoicing.Service
	Ordering  *ordering.Service
	Metering  *metering.Service
}
