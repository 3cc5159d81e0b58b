package domain

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// SeriesReset is when a series starts at 1 again.
type SeriesReset string

// The resets.
const (
	ResetNever        SeriesReset = "NEVER"
	ResetYearly       SeriesReset = "YEARLY"        // on 1 January
	ResetMonthly      SeriesReset = "MONTHLY"       // on the first of each month
	ResetFiscalYearly SeriesReset = "FISCAL_YEARLY" // on the first of the month in which the fiscal year starts
)

// SeriesCharacters is what a printed number may consist of.
type SeriesCharacters string

// The sets of characters.
const (
	CharactersPlain                 SeriesCharacters = "PLAIN"                   // all that a format may hold
	CharactersAlphanumericDashSlash SeriesCharacters = "ALPHANUMERIC_DASH_SLASH" // letters, digits, - and /
	CharactersAlphanumeric          SeriesCharacters = "ALPHANUMERIC"            // letters and digits
)

const alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

var characterSets = map[SeriesCharacters]struct{ set, words string }{
	CharactersPlain:                 {alphanumeric + " ./_#-", "letters, digits, space and . / _ # -"},
	CharactersAlphanumericDashSlash: {alphanumeric + "-/", "letters, digits, - and /"},
	CharactersAlphanumeric:          {alphanumeric, "letters and digits"},
}

// MaxSeriesLength bounds a printed number where no law does.
const MaxSeriesLength = 64

// DefaultSeriesCapacity is how many numbers a period has to hold where nothing else is said.
const DefaultSeriesCapacity = 999_999

// neverBegins is the period of a series that never starts anew.
var neverBegins = NewDate(1, time.January, 1)

// UnusedPeriod is the period of a counter that has given no number yet.
var UnusedPeriod = neverBegins

// SeriesRule is how a series numbers. Check says whether it can: what it accepts never prints two
// of its numbers alike, in whatever periods of a century they are, and never one that is too long.
type SeriesRule struct {
	Code              string
	Format            NumberFormat
	Reset             SeriesReset
	FiscalYearStart   int32 // the month, 1 to 12
	MaxLength         int32 // of a printed number, in characters
	AllowedCharacters SeriesCharacters
	Capacity          int64         // how many numbers a period must be able to hold
	Preset            *SeriesPreset // whose rule it follows, if any
}

// DefaultFormat tells the period where the series resets.
func (r SeriesReset) DefaultFormat() NumberFormat {
	switch r {
	case ResetYearly:
		return "{CODE}-{YYYY}-{N:5}"
	case ResetMonthly:
		return "{CODE}-{YYYY}-{MM}-{N:5}"
	case ResetFiscalYearly:
		return "{CODE}/{FY}/{N:5}"
	}
	return DefaultNumberFormat
}

// tells are the parts that a format needs to tell the periods apart.
func (r SeriesReset) tells() string {
	return map[SeriesReset]string{ResetYearly: "{YYYY} or {YY}", ResetMonthly: "{YYYY} or {YY}, and {MM}", ResetFiscalYearly: "{FY}"}[r]
}

// PeriodStart is the first day of the period that a day lies in.
func (r SeriesRule) PeriodStart(day Date) Date {
	year, month, _ := day.Date()
	switch r.Reset {
	case ResetYearly:
		return NewDate(year, time.January, 1)
	case ResetMonthly:
		return NewDate(year, month, 1)
	case ResetFiscalYearly:
		if int32(month) < r.FiscalYearStart {
			year--
		}
		return NewDate(year, time.Month(r.FiscalYearStart), 1)
	}
	return neverBegins
}

// periodAfter is the first day of the period after the one that begins on a day; false if there is
// none.
func (r SeriesRule) periodAfter(start Date) (Date, bool) {
	switch r.Reset {
	case ResetMonthly:
		return Date{start.AddDate(0, 1, 0)}, true
	case ResetYearly, ResetFiscalYearly:
		return Date{start.AddDate(1, 0, 0)}, true
	}
	return Date{}, false
}

// On is the numbering of an issue date.
func (r SeriesRule) On(day Date) Numbering { return r.Format.On(r.Code, day, r.FiscalYearStart) }

// anyDay stands for all of them where only lengths matter: a part of a date is as long on one day
// as on any other.
var anyDay = NewDate(2026, time.November, 15)

// room is how many digits the number itself may have.
func (r SeriesRule) room() int {
	n := r.On(anyDay)
	return min(int(r.MaxLength)-len(n.Prefix)-len(n.Suffix), maxDigits)
}

// MaxNumber is the largest number that is printed within the maximum length; 0 if there is none.
func (r SeriesRule) MaxNumber() int64 {
	room := r.room()
	if room < int(r.On(anyDay).Width) {
		return 0
	}
	return int64(math.Pow10(room)) - 1 // Pow10 is exact to 22 digits
}

// tooLong says at which number the legal length is exceeded.
func (r SeriesRule) tooLong() string {
	at := r.MaxNumber() + 1
	length := len(r.On(anyDay).Print(at))
	return fmt.Sprintf("at number %d the number would have %d characters, and at most %d are allowed%s", at, length, r.MaxLength,
		r.cites(func(p *PresetRule) *string {
			if r.MaxLength == p.MaxLength {
				return p.MaxLengthSource
			}
			return nil
		}))
}

// cites names the source of a rule that is the preset's own; nil of a stricter one that was asked for.
func (r SeriesRule) cites(source func(p *PresetRule) *string) string {
	if r.Preset == nil {
		return ""
	}
	if s := source(r.Preset.Rule()); s != nil {
		return fmt.Sprintf(" (%s)", *s)
	}
	return ""
}

// Check refuses a rule that could not number, and says what would go wrong, and when.
func (r SeriesRule) Check() error {
	if err := ParseSeriesCode(r.Code); err != nil {
		return err
	}
	switch {
	case r.FiscalYearStart < 1 || r.FiscalYearStart > 12:
		return BadInputAt(Input("fiscalYearStartMonth"), "a month is 1 to 12")
	case r.MaxLength < 1 || r.MaxLength > MaxSeriesLength:
		return BadInputAt(Input("maxLength"), "a maximum length is 1 to %d characters", MaxSeriesLength)
	case r.Capacity < 1 || r.Capacity > int64(math.Pow10(maxDigits))-1:
		return BadInputAt(Input("capacity"), "a capacity is a number of 1 to %d digits, at least 1", maxDigits)
	}
	if r.Preset != nil {
		if err := r.Preset.Rule().admits(r); err != nil {
			return err
		}
	}
	if err := r.Format.check(); err != nil {
		return err
	}
	for _, check := range []func() error{r.checkCharacters, r.checkLength, r.checkReset} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (r SeriesRule) checkCharacters() error {
	n, allowed := r.On(anyDay), characterSets[r.AllowedCharacters]
	for _, c := range n.Prefix + n.Suffix {
		if !strings.ContainsRune(allowed.set, c) {
			return r.Format.invalid("prints the character %q; allowed are %s%s", c, allowed.words,
				r.cites(func(p *PresetRule) *string {
					if r.AllowedCharacters == p.AllowedCharacters {
						return &p.Source
					}
					return nil
				}))
		}
	}
	return nil
}

func (r SeriesRule) checkLength() error {
	switch largest := r.MaxNumber(); {
	case largest == 0:
		return r.Format.invalid("is too long: %s", r.tooLong())
	case largest < r.Capacity:
		return r.Format.invalid("does not hold %d numbers in a period (the capacity): %s", r.Capacity, r.tooLong())
	}
	return nil
}

// checkReset refuses a format that prints number 1 alike in two periods less than a century apart, and
// shows both days.
//
// Every part of a date has one length, so a printed number of some length can be read in one way
// only, and two are alike exactly if number and parts are. It is therefore enough to look for two
// days of different periods with the same parts. If the format tells a year, they lie within two
// years of each other, and within one if it tells none. Which day of the month does not matter, as
// {DD} is the same on both.
//
// {YY} tells a year as {YYYY} does, though it comes back after a century: many businesses number so, and
// have to go on with what they have. Should a series live that long, invoices_number_key refuses the twin.
func (r SeriesRule) checkReset() error {
	const twoYears = 24 // in months
	first, printed := NewDate(2026, time.January, 15), map[int]Numbering{}
	on := func(month int) (Date, Numbering) {
		day := Date{first.AddDate(0, month, 0)}
		if _, known := printed[month]; !known {
			printed[month] = r.On(day)
		}
		return day, printed[month]
	}
	for step := 1; step <= twoYears; step++ {
		for month := range 12 {
			one, a := on(month)
			two, b := on(month + step)
			if a == b && r.PeriodStart(one) != r.PeriodStart(two) {
				return r.Format.invalid("would print %s twice, on %s and on %s: the series starts at 1 again in between, and a format that tells the periods apart has %s",
					a.Print(1), one, two, r.Reset.tells())
			}
		}
	}
	return nil
}
