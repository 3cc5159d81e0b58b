package domain

import (
	"math"
	"strings"
	"testing"
	"time"
)

// A format that can number is accepted, and prints what its placeholders say.
func TestFormatsPrint(t *testing.T) {
	t.Parallel()
	day := NewDate(2026, time.November, 5)
	for _, c := range []struct {
		format NumberFormat
		start  int32 // of the fiscal year
		n      int64
		want   string
	}{
		{DefaultNumberFormat, 1, 42, "INV-00042"},
		{"{N}", 1, 7, "7"},
		{"{N:1}", 1, 7, "7"},
		{"{N:18}", 1, 7, "000000000000000007"},
		{"INV/{FY}/{N:5}", 4, 42, "INV/2026-27/00042"},
		{"INV/{FY}/{N:5}", 1, 42, "INV/2026/00042"},
		{"{CODE} {YYYY}-{MM}-{DD} #{N} _.x", 1, 3, "INV 2026-11-05 #3 _.x"},
		{"{YY}{MM}{DD}{N:2}", 1, 3, "26110503"},
		{"{CODE}{CODE}{N}", 1, 3, "INVINV3"},
	} {
		if err := c.format.check(); err != nil {
			t.Errorf("%s is refused: %v", c.format, err)
		}
		if got := c.format.On("INV", day, c.start).Print(c.n); got != c.want {
			t.Errorf("%s prints %s, want %s", c.format, got, c.want)
		}
	}
}

// A format that cannot number is refused when the series is made, and the answer says why.
func TestFormatsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		format NumberFormat
		reason string
	}{
		{"", "exactly once"},
		{"{CODE}-{YYYY}", "exactly once"},
		{" {N}", "begins or ends with a space"},
		{"{N} ", "begins or ends with a space"},
		{"{N}{N}", "exactly once"},
		{"{N}-{N:5}", "exactly once"},
		{"{N:19}", "pads to 19 digits; at most 18"},
		{"{N:99}", "pads to 99 digits"},
		{"{N:0}", `has "{N:0}"`},
		{"{N:05}", `has "{N:05}"`},
		{"{N:100}", `has "{N:100}"`},
		{"{N:}", `has "{N:}"`},
		{"{N:-5}", `has "{N:-5}"`},
		{"{n}", `has "{n}"`},
		{"{YYY}-{N}", `has "{YYY}"`},
		{"{}{N}", `has "{}"`},
		{"{{N}}", `has "{"`},
		{"{N", `has "{"`},
		{"N}", `has "}"`},
		{"{CODE}:{N}", "characters other than"},
		{"Nº {N}", "characters other than"},
		{"{N}\n", "characters other than"},
		{"{N}\"", "characters other than"},
		{"{N}%d", "characters other than"},
	} {
		err := c.format.check()
		if code(err) != CodeInvalidFormat || path(err) != "input.format" || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%q: %v (%s at %s), want %s", c.format, err, code(err), path(err), c.reason)
		}
	}
}

// {FY} is the year in which the fiscal year starts, and where that is not January the next one
// too: it turns on the first of the start month.
func TestFiscalYear(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		day   Date
		start int32
		want  string
	}{
		{NewDate(2026, 1, 1), 1, "2026"}, {NewDate(2026, 12, 31), 1, "2026"},
		{NewDate(2026, 3, 31), 4, "2025-26"}, {NewDate(2026, 4, 1), 4, "2026-27"}, {NewDate(2027, 3, 31), 4, "2026-27"},
		{NewDate(2026, 1, 31), 2, "2025-26"}, {NewDate(2026, 2, 1), 2, "2026-27"},
		{NewDate(2026, 11, 30), 12, "2025-26"}, {NewDate(2026, 12, 1), 12, "2026-27"},
		{NewDate(2099, 7, 1), 7, "2099-00"}, {NewDate(7, 7, 1), 1, "0007"}, {NewDate(2009, 1, 1), 7, "2008-09"},
	} {
		if got := NumberFormat("{FY}{N}").On("", c.day, c.start).Prefix; got != c.want {
			t.Errorf("the fiscal year of %s from month %d is %s, want %s", c.day, c.start, got, c.want)
		}
	}
}

// Case 4 of the field: a number that has outgrown its padding is printed whole. Cut, it would be
// another invoice's.
func TestCase4PaddingNeverTruncates(t *testing.T) {
	t.Parallel()
	n := NumberFormat("{CODE}-{N:3}").On("A", NewDate(2026, 1, 1), 1)
	for number, want := range map[int64]string{1: "A-001", 99: "A-099", 999: "A-999", 1000: "A-1000", 12345: "A-12345", math.MaxInt64: "A-9223372036854775807"} {
		if got := n.Print(number); got != want {
			t.Errorf("%d is printed %s, want %s", number, got, want)
		}
	}
}

// Two series that would print the same numbers have the same pattern, whatever their padding.
func TestPattern(t *testing.T) {
	t.Parallel()
	if a, b := NumberFormat("{CODE}-{N:5}").Pattern("INV"), NumberFormat("INV-{N}").Pattern("X"); a != b || a != "INV-{N}" {
		t.Errorf("two series that print INV-1 have the patterns %s and %s", a, b)
	}
	if a, b := DefaultNumberFormat.Pattern("A"), DefaultNumberFormat.Pattern("B"); a == b {
		t.Errorf("the series A and B have the same pattern %s", a)
	}
	if got := NumberFormat("{FY}/{YYYY}{YY}{MM}{DD}{N:3}x").Pattern("A"); got != "{FY}/{YYYY}{YY}{MM}{DD}{N}x" {
		t.Errorf("the pattern is %s", got)
	}
}

// A series' code stands in its numbers: letters, digits, - and _.
func TestSeriesCodes(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"A", "INV", "2026", "a_b-c", strings.Repeat("x", 20)} {
		if err := ParseSeriesCode(good); err != nil {
			t.Errorf("%s is refused: %v", good, err)
		}
	}
	for _, bad := range []string{"", "-A", "_A", "A B", "Ä", "A/B", "{N}", "A\n", strings.Repeat("x", 21)} {
		if err := ParseSeriesCode(bad); code(err) != CodeBadInput || path(err) != "input.code" {
			t.Errorf("%q: %v, want BAD_INPUT at input.code", bad, err)
		}
	}
}
