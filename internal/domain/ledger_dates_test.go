package domain

import (
	"strings"
	"testing"
)

// The days of a run are held against the documents right below and right above it, and each fault names its row.
func TestDaysThatContradictADocument(t *testing.T) {
	t.Parallel()
	const text = "number,date\n9,\n4,2026-05-02\n3,\n5,2026-04-30\n8,2026-05-04\n"
	f := &Faults{}
	entries := into.Entries(ReadImportCSV(text, f), f)
	runs := DatedRuns(entries)
	if f.count > 0 || len(runs) != 2 || runs[0].String() != "3 to 5" || runs[0].Earliest != NewDate(2026, 4, 30) || runs[0].Latest != NewDate(2026, 5, 2) ||
		runs[1].String() != "8 to 9" || runs[1].Earliest != runs[1].Latest {
		t.Fatalf("the runs are %+v (%+v)", runs, f)
	}
	for _, c := range []struct {
		below, above Date
		want         string
	}{
		{NewDate(2026, 4, 30), NewDate(2026, 5, 2), ""},
		{NewDate(2026, 5, 1), NewDate(2026, 5, 2), "input csv 5 date"},
		{NewDate(2026, 4, 30), NewDate(2026, 5, 1), "input csv 3 date"},
		{NewDate(2026, 5, 3), NewDate(2026, 5, 3), "input csv 3 date, input csv 5 date"},
	} {
		f := &Faults{}
		runs[0].Contradicts(NumberedOn{2, c.below}, NumberedOn{6, c.above}, f)
		var at []string
		for _, user := range UserErrors(f.Err(Input("csv"))) {
			at = append(at, strings.Join(user.GetPath(), " "))
		}
		if got := strings.Join(at, ", "); got != c.want {
			t.Errorf("between %s and %s: %q, want %q", c.below, c.above, got, c.want)
		}
	}
	if runs := DatedRuns(merge([]LedgerEntry{{NumberRange: NumberRange{1, 9}}})); runs != nil {
		t.Errorf("without a day there are runs: %+v", runs)
	}
}
