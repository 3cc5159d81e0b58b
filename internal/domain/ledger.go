package domain

import (
	"slices"
	"strconv"
)

// LedgerState is what became of a number.
type LedgerState string

// The states. The first two are an invoice's, the others an entry's.
const (
	LedgerIssued          LedgerState = "ISSUED"
	LedgerVoid            LedgerState = "VOID"
	LedgerImported        LedgerState = "IMPORTED"         // issued by the system that numbered before
	LedgerVoidedElsewhere LedgerState = "VOIDED_ELSEWHERE" // and voided there
	LedgerSkipped         LedgerState = "SKIPPED"          // given to nothing
)

// ImportedStatus is what an imported number was in the system it comes from.
type ImportedStatus string

// The statuses.
const (
	ImportedIssued  ImportedStatus = "ISSUED"
	ImportedVoid    ImportedStatus = "VOID"
	ImportedSkipped ImportedStatus = "SKIPPED"
)

var stateOfImported = map[ImportedStatus]LedgerState{
	ImportedIssued: LedgerImported, ImportedVoid: LedgerVoidedElsewhere, ImportedSkipped: LedgerSkipped,
}

// SeriesChangeKind is what was done to a series beside numbering with it.
type SeriesChangeKind string

// The kinds of change.
const (
	ChangeImport SeriesChangeKind = "IMPORT"
	ChangeResync SeriesChangeKind = "RESYNC"
)

// NumberRange is a run of numbers, both ends included.
type NumberRange struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
}

// Count is how many numbers the range holds.
func (r NumberRange) Count() int64 { return r.Last - r.First + 1 }

func (r NumberRange) String() string {
	if r.First == r.Last {
		return strconv.FormatInt(r.First, 10)
	}
	return strconv.FormatInt(r.First, 10) + " to " + strconv.FormatInt(r.Last, 10)
}

// LedgerEntry says where a run of numbers went.
type LedgerEntry struct {
	NumberRange
	State     LedgerState
	IssueDate *Date   // where it is known
	Reference *string // what the other system calls it
	Reason    string

	at []string // the row that it was first made of
}

// like says whether an entry continues another with the same outcome, so that one row can hold both.
func (e LedgerEntry) like(next LedgerEntry) bool {
	sameDay := e.IssueDate == nil && next.IssueDate == nil || e.IssueDate != nil && next.IssueDate != nil && *e.IssueDate == *next.IssueDate
	return e.Last+1 == next.First && e.State == next.State && e.Reason == next.Reason && e.Reference == nil && next.Reference == nil && sameDay
}

// merge joins entries, in the order of their numbers, where they continue one another.
func merge(entries []LedgerEntry) []LedgerEntry {
	var out []LedgerEntry
	for _, e := range entries {
		if n := len(out); n > 0 && out[n-1].like(e) {
			out[n-1].Last = e.Last
			continue
		}
		out = append(out, e)
	}
	return out
}

// TallyEntries counts the numbers of entries by their state.
func TallyEntries(entries []LedgerEntry) map[LedgerState]int64 {
	n := map[LedgerState]int64{}
	for _, e := range entries {
		n[e.State] += e.Count()
	}
	return n
}

// PrintedIn is a number as the series prints it on a day; "" where no day is known and the period does not
// tell it.
func (r SeriesRule) PrintedIn(period Date, day *Date, number int64) string {
	if day != nil {
		return r.On(*day).Print(number)
	}
	first := r.On(period)
	last := period
	if next, resets := r.periodAfter(period); resets {
		last = Date{next.AddDate(0, 0, -1)}
	} else {
		last = NewDate(2999, 12, 31) // no part of a date is the same on both
	}
	if first != r.On(last) {
		return ""
	}
	return first.Print(number)
}

// Parse reads a number as Print prints it; false if it is printed otherwise.
func (n Numbering) Parse(printed string) (number int64, ok bool) {
	end := len(printed) - len(n.Suffix)
	if end < len(n.Prefix) {
		return 0, false
	}
	number, err := strconv.ParseInt(printed[len(n.Prefix):end], 10, 64)
	return number, err == nil && number >= 1 && n.Print(number) == printed
}

// LedgerPlace is where a period stands to a series' counter.
type LedgerPlace int

// The places.
const (
	PeriodLeft    LedgerPlace = iota // before the counter's
	PeriodCurrent                    // the counter's
	PeriodAhead                      // after the counter's, or the counter has given no number yet
)

// Place says where a period stands to a counter.
func (c CounterState) Place(period Date) LedgerPlace {
	switch {
	case period == c.PeriodStart:
		return PeriodCurrent
	case period.After(c.PeriodStart.Time):
		return PeriodAhead
	}
	return PeriodLeft
}

// NumbersTakenError refuses numbers that have an invoice or an entry already.
type NumbersTakenError struct {
	Refusal
	Numbers []int64 // the first of them
	Count   int64
}

// NumbersTaken makes a NumbersTakenError.
func NumbersTaken(path []string, numbers []int64, count int64) *NumbersTakenError {
	slices.Sort(numbers)
	return &NumbersTakenError{Numbers: numbers, Count: count, Refusal: *Refuse(CodeNumbersTaken, path,
		"%d of the numbers are taken, by an invoice or an entry; the first is %d", count, numbers[0])}
}

// NumbersUnexplainedError refuses what would leave numbers behind that nothing accounts for.
type NumbersUnexplainedError struct {
	Refusal
	Gaps     []*NumberRange // the first of them
	GapCount int64
	Numbers  int64 // how many numbers the gaps hold
}

// NumbersUnexplained makes a NumbersUnexplainedError.
func NumbersUnexplained(path []string, gaps []*NumberRange, count, numbers int64) *NumbersUnexplainedError {
	return &NumbersUnexplainedError{Gaps: gaps, GapCount: count, Numbers: numbers, Refusal: *Refuse(CodeNumbersUnexplained, path,
		"%d numbers would be left without an explanation, in %d gaps; the first is %s: account for each, with a reason where it was skipped", numbers, count, gaps[0])}
}
