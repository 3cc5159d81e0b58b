// Package auth says who is calling, and for which tenant.
package auth

import (
	"context"

	"countersign/internal/domain"
)

// Caller is who makes a request. Everything it reads and writes is its tenant's; a caller in the
// role CUSTOMER sees and moves only what belongs to its customer.
type Caller struct {
	TenantID   domain.TenantID
	TokenID    domain.TokenID
	Role       domain.Role
	CustomerID domain.CustomerID // of the role CUSTOMER; zero for the others
}

// Sees says whether the caller may know of what belongs to a customer of its tenant.
func (c Caller) Sees(customer domain.CustomerID) bool {
	return c.Role != domain.RoleCustomer || c.CustomerID == customer
}

// Narrow is the customer that a list is about, zero for any: the one that was asked for (nil: any),
// within what the caller sees. ok is false where that leaves nothing.
func (c Caller) Narrow(asked *domain.CustomerID) (customer domain.CustomerID, ok bool) {
	switch {
	case c.Role == domain.RoleCustomer:
		return c.CustomerID, asked == nil || *asked == c.CustomerID
	case asked == nil:
		return customer, true
	}
	return *asked, true
}

// Operation names a write of this caller. The keys of a customer are its own: another's may be the
// same.
func (c Caller) Operation(mutation, scope string, key *string, input any) (domain.Operation, error) {
	if scope == "" && c.Role == domain.RoleCustomer {
		scope = c.CustomerID.String()
	}
	return domain.NewOperation(c.TenantID, c.TokenID.String(), mutation, scope, key, input)
}

type callerKey struct{}

// With is a context in which c calls.
func With(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// From is who calls; ok is false if nobody has said.
func From(ctx context.Context) (c Caller, ok bool) {
	c, ok = ctx.Value(callerKey{}).(Caller)
	return c, ok
}
