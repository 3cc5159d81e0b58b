package graph

import (
	"github.com/vektah/gqlparser/v2/ast"

	"countersign/internal/domain"
)

// size is what a part of a document comes to where its fragments are spread out.
type size struct {
	depth, roots, fields, aliases, directives, spreads, repeats, variables, selections int
}

// and is both, side by side.
func (s size) and(t size) size {
	return size{
		depth: max(s.depth, t.depth), roots: sum(s.roots, t.roots), fields: sum(s.fields, t.fields), aliases: sum(s.aliases, t.aliases),
		directives: sum(s.directives, t.directives), spreads: sum(s.spreads, t.spreads), repeats: sum(s.repeats, t.repeats),
		variables: sum(s.variables, t.variables), selections: sum(s.selections, t.selections),
	}
}

// below is what stands one level under a field or an inline fragment.
func (s size) below() size {
	s.depth++
	return s
}

// meter measures a document, each fragment of it once: 26 levels of fragments that each spread the
// next twice are 26 visits, and a count of 67 million.
type meter struct {
	doc     *ast.QueryDocument
	named   map[string]*ast.FragmentDefinition
	sizes   map[*ast.FragmentDefinition]*size // nil while it is being measured
	visited int                               // nodes of the document; each has a token of its own
	cyclic  error                             // the first fragment found to spread itself
}

func newMeter(doc *ast.QueryDocument) *meter {
	m := &meter{doc: doc, named: map[string]*ast.FragmentDefinition{}, sizes: map[*ast.FragmentDefinition]*size{}}
	for _, f := range doc.Fragments {
		if m.named[f.Name] == nil { // of two with one name the validator takes the first, and then refuses
			m.named[f.Name] = f
		}
	}
	return m
}

func (m *meter) operation(op *ast.OperationDefinition) size {
	m.visited++
	s := m.selections(op.SelectionSet, map[string]bool{}).and(m.directives(op.Directives))
	return s.and(m.variables(op.VariableDefinitions))
}

func (m *meter) variables(list ast.VariableDefinitionList) (s size) {
	for _, v := range list {
		m.visited++
		s = s.and(size{variables: 1}).and(m.directives(v.Directives)).and(m.value(v.DefaultValue))
	}
	return s
}

// known says whether a fragment has been measured, or is being measured.
func (m *meter) known(f *ast.FragmentDefinition) bool {
	_, known := m.sizes[f]
	return known
}

// fragment measures a fragment; one that comes back to itself is none.
func (m *meter) fragment(f *ast.FragmentDefinition) (size, error) {
	if s, known := m.sizes[f]; known {
		if s == nil {
			m.cyclic = domain.BadInput("the fragment %s spreads itself", clipped(f.Name, maxName))
			return size{}, m.cyclic
		}
		return *s, m.cyclic
	}
	m.sizes[f] = nil
	m.visited++
	s := m.selections(f.SelectionSet, map[string]bool{}).and(m.directives(f.Directives)).and(m.variables(f.VariableDefinition))
	m.sizes[f] = &s
	return s, m.cyclic
}

// selections measures a selection set. names are the response names of the selection so far, to
// which inline fragments add.
func (m *meter) selections(set ast.SelectionSet, names map[string]bool) (s size) {
	for _, selection := range set {
		m.visited++
		one := size{selections: 1}
		switch n := selection.(type) {
		case *ast.Field:
			one.roots, one.fields = 1, 1
			if n.Alias != n.Name {
				one.aliases = 1
			}
			if names[n.Alias] {
				one.repeats = 1
			}
			names[n.Alias] = true
			one.depth = 1
			if len(n.SelectionSet) > 0 {
				inner := m.selections(n.SelectionSet, map[string]bool{})
				inner.roots = 0
				one = one.and(inner.below())
			}
			one = one.and(m.directives(n.Directives)).and(m.arguments(n.Arguments))
		case *ast.InlineFragment:
			one = one.and(m.selections(n.SelectionSet, names).below()).and(m.directives(n.Directives))
		case *ast.FragmentSpread:
			one.spreads = 1
			one = one.and(m.directives(n.Directives))
			if f := m.named[n.Name]; f != nil {
				inner, err := m.fragment(f)
				if err != nil {
					return s.and(one)
				}
				one = one.and(inner)
			}
		}
		s = s.and(one)
	}
	return s
}

func (m *meter) directives(list ast.DirectiveList) (s size) {
	for _, d := range list {
		m.visited++
		s = s.and(size{directives: 1}).and(m.arguments(d.Arguments))
	}
	return s
}

func (m *meter) arguments(list ast.ArgumentList) (s size) {
	for _, a := range list {
		s = s.and(m.value(a.Value))
	}
	return s
}

// value measures a literal: lists and objects have levels, too.
func (m *meter) value(v *ast.Value) (s size) {
	if v == nil {
		return s
	}
	m.visited++
	for _, child := range v.Children {
		s = s.and(m.value(child.Value))
	}
	if v.Kind == ast.ListValue || v.Kind == ast.ObjectValue {
		return s.below()
	}
	return s
}
