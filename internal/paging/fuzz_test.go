package paging_test

import (
	"slices"
	"testing"

	"countersign/internal/paging"
)

// FuzzCut: a page has the rows that the query found next to where it begins, in the order of the list,
// and says truly whether more lie on either side.
func FuzzCut(f *testing.F) {
	f.Add(uint8(0), uint8(1), uint8(0), uint8(0), false)
	f.Add(uint8(10), uint8(3), uint8(2), uint8(9), true)
	f.Add(uint8(10), uint8(7), uint8(2), uint8(9), false)
	f.Fuzz(func(t *testing.T, total, size, after, before uint8, backward bool) {
		r := paging.Request[uint8]{After: after, Before: before, Size: int32(size), Backward: backward, Inside: after > 0 && !backward || before > 0 && backward}
		var list, found []uint8 // the list is 1 to total; found is what a query returns
		for key := range int(total) {
			if k := uint8(key + 1); k > after && (before == 0 || k < before) {
				list = append(list, k)
			}
		}
		found = slices.Clone(list)
		if backward {
			slices.Reverse(found)
		}
		p := paging.Cut(r, found[:min(len(found), int(r.Limit()))])
		want, more := list[:min(len(list), int(size))], len(list) > int(size)
		if backward {
			want = list[max(0, len(list)-int(size)):]
		}
		ahead, behind := p.HasNext, p.HasPrevious
		if backward {
			ahead, behind = behind, ahead
		}
		if !slices.Equal(p.Rows, want) || ahead != more || behind != r.Inside {
			t.Fatalf("of %v the page is %v, more %v and %v, want %v, %v and %v", list, p.Rows, ahead, behind, want, more, r.Inside)
		}
	})
}
