package domain

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// NumberFormat is the template that an invoice series prints its numbers by: literals and
// placeholders. {CODE} is the series' code; {YYYY} {YY} {MM} {DD} are parts of the issue date;
// {FY} is its fiscal year (2026 where it starts in January, else 2026-27); {N} is the number and
// {N:5} the number padded with zeros to at least five digits. It holds exactly one {N}.
type NumberFormat string

// DefaultNumberFormat prints INV-00042.
const DefaultNumberFormat NumberFormat = "{CODE}-{N:5}"

// maxDigits is the longest that a number is, padded or not.
const maxDigits = 18

var (
	seriesCode    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,19}$`)
	formatPart    = regexp.MustCompile(`\{[^{}]*\}|[^{}]+|[{}]`)
	formatLiteral = regexp.MustCompile(`^[A-Za-z0-9 ./_#-]+$`)
	numberPart    = regexp.MustCompile(`^\{N(?::([1-9][0-9]?))?\}$`)
)

// Numbering is a format at work on one issue date: what stands before and after the number, and
// the width it is padded to. The series' counter keeps it, so that the statement that takes a
// number only concatenates.
type Numbering struct {
	Prefix, Suffix string
	Width          int32
}

// Print is number n as it stands on the invoice. Padding never truncates.
func (n Numbering) Print(number int64) string {
	return fmt.Sprintf("%s%0*d%s", n.Prefix, int(n.Width), number, n.Suffix)
}

// ParseSeriesCode refuses what is no code of a series.
func ParseSeriesCode(code string) error {
	if !seriesCode.MatchString(code) {
		return BadInputAt(Input("code"), "a code is 1 to 20 letters, digits, - or _, and starts with a letter or digit")
	}
	return nil
}

// check refuses what is no format, and says why.
func (f NumberFormat) check() error {
	numbers := 0
	for _, part := range f.parts() {
		switch {
		case numberPart.MatchString(part):
			numbers++
			if width := numberWidth(part); width > maxDigits {
				return f.invalid("pads to %d digits; at most %d", width, maxDigits)
			}
		case datePart[part] != nil, part == "{CODE}":
		case strings.ContainsAny(part, "{}"):
			return f.invalid("has %.40q, which is none of {CODE} {YYYY} {YY} {MM} {DD} {FY} {N} {N:5}", part)
		case !formatLiteral.MatchString(part):
			return f.invalid("has characters other than letters, digits, space and . / _ # - outside its placeholders")
		}
	}
	if strings.TrimSpace(string(f)) != string(f) {
		return f.invalid("begins or ends with a space")
	}
	if numbers != 1 {
		return f.invalid("needs the number, {N} or {N:5}, exactly once")
	}
	return nil
}

func (f NumberFormat) invalid(format string, args ...any) *Refusal {
	return Refuse(CodeInvalidFormat, Input("format"), "the format "+format, args...)
}

// On is the numbering of an issue date. fiscalStart is the month, 1 to 12, in which the fiscal
// year starts.
func (f NumberFormat) On(code string, date Date, fiscalStart int32) Numbering {
	var n Numbering
	out := &n.Prefix
	for _, part := range f.parts() {
		switch {
		case numberPart.MatchString(part):
			n.Width = numberWidth(part)
			out = &n.Suffix
		case part == "{CODE}":
			*out += code
		case datePart[part] != nil:
			*out += datePart[part](date, fiscalStart)
		default:
			*out += part
		}
	}
	return n
}

// Pattern is the format with the code filled in and without its padding: two series of one tenant
// that share it would print the same numbers. (PrintsLike finds all that could.)
func (f NumberFormat) Pattern(code string) string {
	var pattern strings.Builder
	for _, part := range f.parts() {
		switch {
		case part == "{CODE}":
			part = code
		case numberPart.MatchString(part):
			part = "{N}"
		}
		pattern.WriteString(part)
	}
	return pattern.String()
}

func (f NumberFormat) parts() []string { return formatPart.FindAllString(string(f), -1) }

func numberWidth(part string) int32 {
	width, err := strconv.ParseInt(numberPart.FindStringSubmatch(part)[1], 10, 32)
	if err != nil {
		return 1
	}
	return int32(width)
}

var datePart = map[string]func(Date, int32) string{
	"{YYYY}": func(d Date, _ int32) string { return d.Format("2006") },
	"{YY}":   func(d Date, _ int32) string { return d.Format("06") },
	"{MM}":   func(d Date, _ int32) string { return d.Format("01") },
	"{DD}":   func(d Date, _ int32) string { return d.Format("02") },
	"{FY}":   fiscalYear,
}

func fiscalYear(d Date, start int32) string {
	year := d.Year()
	if int32(d.Month()) < start {
		year--
	}
	if start == 1 {
		return fmt.Sprintf("%04d", year)
	}
	return fmt.Sprintf("%04d-%02d", year, (year+1)%100)
}

// IssueDate decides on which day the next invoice of a series is issued, given its counter's last
// issue date (the zero Date on a series not used yet), today in the series' zone, and the day that
// was asked for, if any. Numbers are chronological, so the day never steps back: clocks of
// different servers differ, and the counter's word is final.
func IssueDate(requested *Date, last, today Date) (Date, error) {
	latest := today
	if last.After(today.Time) {
		latest = last
	}
	switch {
	case requested == nil:
		return latest, nil
	case requested.After(latest.Time):
		return Date{}, BadInputAt(Input("issueDate"), "the issue date %s is in the future: it is %s in the series' time zone", requested, today)
	case requested.Before(last.Time):
		return Date{}, &PeriodClosedError{
			Refusal: Refusal{
				Code: CodePeriodClosed, Path: Input("issueDate"),
				Message: fmt.Sprintf("the series has already issued a document on %s, and numbers are chronological", last),
			},
			LastIssueDate: last,
		}
	}
	return *requested, nil
}

// MarshalGQL prints the template.
func (f NumberFormat) MarshalGQL(w io.Writer) {
	_, _ = io.WriteString(w, strconv.Quote(string(f))) // its characters need no escapes that JSON does not know
}

// UnmarshalGQL reads a template; Check says whether it can number.
func (f *NumberFormat) UnmarshalGQL(v any) error {
	s, err := ParseText(v)
	*f = NumberFormat(s)
	return err
}
