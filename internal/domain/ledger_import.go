package domain

import (
	"cmp"
	"fmt"
	"slices"
)

// MaxImportRows bounds one import.
const MaxImportRows = 100_000

// maxFaults bounds how many faults of an import are told.
const maxFaults = 100

// ImportedNumber is a row of an import. It names its number, or how it was printed, or both.
type ImportedNumber struct {
	Number     *int64          `json:"number"`
	LastNumber *int64          `json:"lastNumber"` // of a run of numbers with one outcome
	Printed    *string         `json:"printed"`
	Date       *Date           `json:"date"`
	Status     *ImportedStatus `json:"status"`
	Reference  *string         `json:"reference"`
	Reason     *string         `json:"reason"`
}

// ImportRow is a row with the path by which its faults name it.
type ImportRow struct {
	ImportedNumber
	At  []string // input, numbers, 3 or input, csv, 17 (the line)
	CSV bool     // its fields are columns
}

// lastNumber is what the row calls the end of its run.
func (r ImportRow) lastNumber() string {
	if r.CSV {
		return "last_number"
	}
	return "lastNumber"
}

// Faults are what is wrong with an import, row by row: the first of them, and how many there are.
type Faults struct {
	told  []error
	count int
}

// Add tells of a fault.
func (f *Faults) Add(at []string, field, format string, args ...any) {
	if f.count++; f.count <= maxFaults {
		f.told = append(f.told, Refuse(CodeInvalidRow, append(slices.Clone(at), field), format, args...))
	}
}

// Err joins the faults: a user error each, and one that says how many more there are. Nil if there
// are none.
func (f *Faults) Err(input []string) error {
	if f.count == 0 {
		return nil
	}
	told := f.told
	if more := f.count - len(told); more > 0 {
		told = append(slices.Clip(told), Refuse(CodeInvalidRow, input, "%d more faults are not told", more))
	}
	return joined(told)
}

// joined are errors that are answered together.
type joined []error

func (j joined) Error() string   { return fmt.Sprintf("%d faults; the first: %v", len(j), j[0]) }
func (j joined) Unwrap() []error { return j }

// Importing is what an import is checked against.
type Importing struct {
	Rule   SeriesRule
	Period Date
	Today  Date   // in the series' zone
	Reason string // of the rows that have none of their own
}

// Entries checks rows and makes entries of them, in the order of their numbers and as few as say it. Each fault
// goes to f.
//
// A number that was printed otherwise than the series prints it is refused: what a series prints no
// other prints, so what is imported collides with no invoice, now or later.
func (im Importing) Entries(rows []ImportRow, f *Faults) []LedgerEntry {
	type placed struct {
		LedgerEntry
		row int
	}
	all := make([]placed, 0, len(rows))
	c := &checking{Importing: im, largest: im.Rule.MaxNumber(), dayless: im.Rule.PrintedIn(im.Period, nil, 1) != "", days: map[Date]Numbering{}}
	for i, row := range rows {
		before := f.count
		if e := c.entry(row, f); f.count == before {
			all = append(all, placed{e, i})
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.First, b.First) })
	entries, reaches := make([]LedgerEntry, 0, len(all)), placed{}
	for _, e := range all {
		if e.First <= reaches.Last {
			f.Add(rows[e.row].At, "number", "%s is also in row %s", e.NumberRange, rows[reaches.row].At[len(rows[reaches.row].At)-1])
		}
		if e.Last > reaches.Last {
			reaches = e
		}
		entries = append(entries, e.LedgerEntry)
	}
	return merge(entries)
}

// checking is an import at its check, with what its rows need of the rule: the format is read once, and once
// for each day, not for each row.
type checking struct {
	Importing
	largest int64
	dayless bool // what is printed around a number is the same on each day of the period
	days    map[Date]Numbering
}

// on is the numbering of a day.
func (c *checking) on(day Date) Numbering {
	n, known := c.days[day]
	if !known {
		n = c.Rule.On(day)
		c.days[day] = n
	}
	return n
}

// entry checks one row.
func (c *checking) entry(row ImportRow, f *Faults) (e LedgerEntry) {
	e = LedgerEntry{State: LedgerImported, IssueDate: row.Date, Reference: row.Reference, Reason: c.Reason, at: row.At}
	if row.Status != nil {
		e.State = stateOfImported[*row.Status]
	}
	for i, text := range []*string{row.Reference, row.Reason} {
		field := []string{"reference", "reason"}[i]
		if text != nil && CheckText([]string{field}, *text, 500) != nil {
			f.Add(row.At, field, "a %s is 1 to 500 characters and not blank", field)
		}
	}
	if row.Reason != nil {
		e.Reason = *row.Reason
	}
	switch {
	case row.Date != nil && row.Date.After(c.Today.Time):
		f.Add(row.At, "date", "%s is in the future: it is %s in the series' time zone", row.Date, c.Today)
	case row.Date != nil && c.Rule.PeriodStart(*row.Date) != c.Period:
		f.Add(row.At, "date", "%s is not in the period that begins on %s", row.Date, c.Period)
	}
	c.numbers(row, &e, f)
	return e
}

// numbers reads which numbers a row is about.
func (c *checking) numbers(row ImportRow, e *LedgerEntry, f *Faults) {
	switch {
	case row.Number == nil && row.Printed == nil:
		f.Add(row.At, "number", "a row names its number, or how it was printed")
		return
	case row.Printed != nil && row.Date == nil && !c.dayless:
		f.Add(row.At, "date", "what is printed around a number depends on its day: give it")
		return
	case row.Printed != nil:
		day := c.Period
		if row.Date != nil {
			day = *row.Date
		}
		n, ok := c.on(day).Parse(*row.Printed)
		if !ok || row.Number != nil && *row.Number != n {
			of := int64(1)
			if row.Number != nil {
				of = max(of, *row.Number)
			}
			f.Add(row.At, "printed", "the series prints its number %d as %s on %s: keep another text as the reference", of, c.on(day).Print(of), day)
			return
		}
		e.First = n
	default:
		e.First = *row.Number
	}
	e.Last = e.First
	if row.LastNumber != nil {
		e.Last = *row.LastNumber
	}
	switch {
	case e.First < 1 || e.Last > c.largest:
		f.Add(row.At, "number", "the series' numbers are 1 to %d", c.largest)
	case e.Last < e.First:
		f.Add(row.At, row.lastNumber(), "a run ends at its first number, or after it")
	case e.Last > e.First && row.Reference != nil:
		f.Add(row.At, "reference", "a reference is one number's")
	}
}

// ExplainedRange is a run of numbers that were given to nothing, and why.
type ExplainedRange struct {
	NumberRange
	Reason string `json:"reason"`
}
