package domain

// DatedRun is a run of entries with no number between them, and the earliest and the latest of their days.
type DatedRun struct {
	NumberRange
	Earliest, Latest Date
	entries          []LedgerEntry
}

// DatedRuns are the runs of entries, in the order of their numbers, of which a day is known.
func DatedRuns(entries []LedgerEntry) []DatedRun {
	var runs []DatedRun
	for from, to := 0, 0; from < len(entries); from = to {
		for to = from + 1; to < len(entries) && entries[to].First == entries[to-1].Last+1; to++ {
		}
		run := DatedRun{NumberRange: NumberRange{entries[from].First, entries[to-1].Last}, entries: entries[from:to]}
		dated := false
		for _, e := range run.entries {
			if e.IssueDate == nil {
				continue
			}
			if !dated || e.IssueDate.Before(run.Earliest.Time) {
				run.Earliest = *e.IssueDate
			}
			if !dated || e.IssueDate.After(run.Latest.Time) {
				run.Latest = *e.IssueDate
			}
			dated = true
		}
		if dated {
			runs = append(runs, run)
		}
	}
	return runs
}

// NumberedOn is a number that was issued here, and its day.
type NumberedOn struct {
	Number int64
	Day    Date
}

// Contradicts adds a fault for each entry of the run that is dated before the number issued right below the run, or
// after the one right above it.
func (r DatedRun) Contradicts(below, above NumberedOn, f *Faults) {
	for _, e := range r.entries {
		switch {
		case e.IssueDate == nil:
		case e.IssueDate.Before(below.Day.Time):
			f.Add(e.at, "date", "%s of number %s is before %s, on which the lower number %d was issued here", e.IssueDate, e.NumberRange, below.Day, below.Number)
		case e.IssueDate.After(above.Day.Time):
			f.Add(e.at, "date", "%s of number %s is after %s, on which the higher number %d was issued here", e.IssueDate, e.NumberRange, above.Day, above.Number)
		}
	}
}
