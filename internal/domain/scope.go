package domain

import (
	"math/bits"
	"slices"
	"strings"
)

// Scope is a right that an access token may be narrowed to: to read, or to write one noun. The
// schema says at each mutation which scope it takes.
type Scope string

// The scopes, as tokens and commands spell them.
const (
	ScopeRead            Scope = "read"
	ScopeCustomersWrite  Scope = "customers:write"
	ScopeProductsWrite   Scope = "products:write"
	ScopeInvoicesWrite   Scope = "invoices:write"
	ScopeSeriesWrite     Scope = "series:write"
	ScopeOrdersWrite     Scope = "orders:write"
	ScopeUsageWrite      Scope = "usage:write"
	ScopeKeysWrite       Scope = "keys:write"
	ScopeExemptionsWrite Scope = "exemptions:write"
	ScopeTokensWrite     Scope = "tokens:write"
)

// AllScopes are the scopes there are. A scope's place is its bit in Scopes, which no database and
// no client sees.
var AllScopes = []Scope{
	ScopeRead, ScopeCustomersWrite, ScopeProductsWrite, ScopeInvoicesWrite, ScopeSeriesWrite, ScopeOrdersWrite,
	ScopeUsageWrite, ScopeKeysWrite, ScopeExemptionsWrite, ScopeTokensWrite,
}

// Scopes are what a caller may do within its role. The zero value is not narrowed: all that the
// role may. A narrowed one may hold nothing.
type Scopes uint32

// narrowed tells no scopes from all of them.
const narrowed Scopes = 1 << 31

// NarrowTo makes Scopes of exactly these; what is no scope grants nothing.
func NarrowTo(scopes ...Scope) Scopes {
	s := narrowed
	for _, scope := range scopes {
		s |= scope.bit()
	}
	return s
}

// ParseScopes reads scopes as tokens and commands spell them; nil is not narrowed. It refuses an
// empty list, which would grant nothing, and what is no scope.
func ParseScopes(path []string, spelt []Scope) (Scopes, error) {
	if spelt == nil {
		return 0, nil
	}
	if len(spelt) == 0 {
		return 0, BadInputAt(path, "an empty list of scopes grants nothing: leave it out, or name one")
	}
	s := narrowed
	for _, one := range spelt {
		bit := one.bit()
		if bit == 0 {
			return 0, BadInputAt(path, "a scope is one of %s", JoinScopes(AllScopes, ", "))
		}
		s |= bit
	}
	return s, nil
}

func (s Scope) bit() Scopes {
	if i := slices.Index(AllScopes, s); i >= 0 {
		return 1 << i
	}
	return 0
}

// Narrowed says whether these are less than all that the role may.
func (s Scopes) Narrowed() bool { return s&narrowed != 0 }

// Allow says whether a scope is among these. What is no scope ("") is allowed to those alone that
// are not narrowed.
func (s Scopes) Allow(scope Scope) bool { return !s.Narrowed() || s&scope.bit() != 0 }

// Cover says whether these allow all that other does: whoever has them may give other away.
func (s Scopes) Cover(other Scopes) bool { return !s.Narrowed() || other.Narrowed() && other&^s == 0 }

// List spells the scopes, in the order of AllScopes; nil where these are not narrowed.
func (s Scopes) List() []Scope {
	if !s.Narrowed() {
		return nil
	}
	out := make([]Scope, 0, bits.OnesCount32(uint32(s))-1)
	for i, scope := range AllScopes {
		if s&(1<<i) != 0 {
			out = append(out, scope)
		}
	}
	return out
}

// JoinScopes spells scopes with a separator between them.
func JoinScopes(scopes []Scope, separator string) string {
	out := make([]string, len(scopes))
	for i, s := range scopes {
		out[i] = string(s)
	}
	return strings.Join(out, separator)
}
