package domain

import (
	"slices"
	"testing"
)

// What is not narrowed may everything; what is narrowed may what it lists, and nothing else: not
// even what has no scope.
func TestScopesAllow(t *testing.T) {
	t.Parallel()
	some := NarrowTo(ScopeRead, ScopeUsageWrite)
	for _, scope := range append(slices.Clone(AllScopes), "", "usage:read", "USAGE:WRITE") {
		if !Scopes(0).Allow(scope) {
			t.Errorf("not narrowed, and %q is not allowed", scope)
		}
		if want := scope == ScopeRead || scope == ScopeUsageWrite; some.Allow(scope) != want {
			t.Errorf("narrowed to read and usage:write: %q is allowed: %v", scope, !want)
		}
		if NarrowTo().Allow(scope) {
			t.Errorf("narrowed to nothing, and %q is allowed", scope)
		}
	}
	if got := some.List(); !slices.Equal(got, []Scope{"read", "usage:write"}) || Scopes(0).List() != nil || NarrowTo().List() == nil {
		t.Errorf("spelt %q, %v and %v", got, Scopes(0).List(), NarrowTo().List())
	}
}

// Nobody can give away what it does not have: less covers less, and never all.
func TestScopesCover(t *testing.T) {
	t.Parallel()
	all, some, more, none := Scopes(0), NarrowTo(ScopeRead), NarrowTo(ScopeRead, ScopeKeysWrite), NarrowTo()
	for _, c := range []struct {
		name       string
		has, given Scopes
		want       bool
	}{
		{"all for all", all, all, true}, {"all for some", all, some, true}, {"some for all", some, all, false},
		{"every scope for all", NarrowTo(AllScopes...), all, false}, {"more for some", more, some, true},
		{"some for more", some, more, false}, {"some for some", some, some, true}, {"none for some", none, some, false}, {"some for none", some, none, true},
	} {
		if got := c.has.Cover(c.given); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// A spelling that is wrong is refused, and never a scope less; a list of nothing is no list.
func TestParseScopes(t *testing.T) {
	t.Parallel()
	if s, err := ParseScopes(nil, nil); err != nil || s.Narrowed() {
		t.Errorf("no list: %v, %v", s, err)
	}
	if s, err := ParseScopes(nil, []Scope{"orders:write", "read", "read"}); err != nil || s != NarrowTo(ScopeRead, ScopeOrdersWrite) {
		t.Errorf("a list: %v, %v", s.List(), err)
	}
	for _, spelt := range [][]Scope{{}, {""}, {"Read"}, {"read", "everything"}, {"read orders:write"}} {
		if s, err := ParseScopes(Input("scopes"), spelt); code(err) != CodeBadInput || path(err) != "input.scopes" {
			t.Errorf("%q: %v, %v", spelt, s.List(), err)
		}
	}
}
