// Package paging holds what every list has in common: a page is asked for by the keys it lies
// between, so that it costs the same wherever it lies and never skips or repeats a row.
package paging

// Request asks for a page of rows whose keys lie strictly between After and Before.
type Request[K any] struct {
	After, Before K
	Size          int32
	Backward      bool // the last Size rows of the range instead of the first
	Inside        bool // After (or, backward, Before) was given: there are rows on its other side
}

// Limit is what the query asks for: one row more than the page holds, to know whether it is the
// last.
func (r Request[K]) Limit() int32 { return r.Size + 1 }

// Page is a page of rows, in the order of the list.
type Page[T any] struct {
	Rows                 []T
	HasNext, HasPrevious bool
}

// Cut makes a page of what the query returned, in the order it returned it.
func Cut[T, K any](r Request[K], rows []T) Page[T] {
	more := len(rows) > int(r.Size)
	if more {
		rows = rows[:r.Size]
	}
	if !r.Backward {
		return Page[T]{Rows: rows, HasNext: more, HasPrevious: r.Inside}
	}
	reversed := make([]T, len(rows))
	for i, row := range rows {
		reversed[len(rows)-1-i] = row
	}
	return Page[T]{Rows: reversed, HasNext: r.Inside, HasPrevious: more}
}

// CutEach makes a page of each group of rows, which one query returned with a limit for each.
func CutEach[T, K any](r Request[K], groups [][]T) []Page[T] {
	pages := make([]Page[T], len(groups))
	for i, rows := range groups {
		pages[i] = Cut(r, rows)
	}
	return pages
}

// InOrder answers each id at its place with its row, or with nil where there is none that may be
// seen: an id that is hidden answers like one that does not exist.
func InOrder[ID comparable, Row any](ids []ID, rows []*Row, of func(*Row) (id ID, visible bool)) []*Row {
	found := make(map[ID]*Row, len(rows))
	for _, row := range rows {
		if id, visible := of(row); visible {
			found[id] = row
		}
	}
	out := make([]*Row, len(ids))
	for i, id := range ids {
		out[i] = found[id]
	}
	return out
}

// IDs are the rows' ids, at their places.
func IDs[ID, Row any](rows []Row, of func(Row) ID) []ID {
	ids := make([]ID, len(rows))
	for i, row := range rows {
		ids[i] = of(row)
	}
	return ids
}

// Group answers each id at its place with the rows that belong to it, in the order they came in.
func Group[ID comparable, Row any](ids []ID, rows []Row, of func(Row) ID) [][]Row {
	grouped := make(map[ID][]Row, len(ids))
	for _, row := range rows {
		grouped[of(row)] = append(grouped[of(row)], row)
	}
	out := make([][]Row, len(ids))
	for i, id := range ids {
		out[i] = grouped[id]
	}
	return out
}
