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
	TokenID    domain.TokenID // zero where no access token was presented
	Subject    string         // of a JWT, in safe characters, at most maxSubject; "" where none was presented
	Role       domain.Role
	CustomerID domain.CustomerID // of the role CUSTOMER; zero for the others
	Scopes     domain.Scopes     // what it may do within its role; the zero value is all of that
}

// By names the caller in the rows it makes and in the log: the id of its access token (tok_…), the
// subject of its JWT (jwt:…), or "command" for the command line, which needs neither.
func (c Caller) By() string {
	switch {
	case c.Subject != "":
		return "jwt:" + c.Subject
	case c.TokenID == domain.TokenID{}:
		return "command"
	}
	return c.TokenID.String()
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
	return domain.NewOperation(c.TenantID, c.By(), mutation, scope, key, input)
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
