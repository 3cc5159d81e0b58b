package domain

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// A whole number has one spelling, as a number or as a string; nothing that a client could mean
// otherwise is taken for one.
func TestWholeNumbersOfTheWire(t *testing.T) {
	t.Parallel()
	for in, want := range map[any]int64{
		"0": 0, "7": 7, "-7": -7, "9223372036854775807": math.MaxInt64, "-9223372036854775808": math.MinInt64,
		json.Number("12"): 12, json.Number("-12"): -12, json.Number("9007199254740993"): 9007199254740993, int64(5): 5, 5: 5,
	} {
		if got, err := ParseInt64(in); err != nil || got != want {
			t.Errorf("%T %v is read as %d (%v)", in, in, got, err)
		}
	}
	for _, in := range []any{
		"", " 1", "1 ", "+1", "01", "-01", "-0", "00", "1.0", "1e3", "1_000", "0x1F", "٣", "NaN", "9223372036854775808", "-9223372036854775809",
		json.Number("1.0"), json.Number("1e3"), json.Number("-0"), json.Number("9223372036854775808"), 1.0, 1.5, true, nil, []any{1}, map[string]any{},
	} {
		if got, err := ParseInt64(in); code(err) != CodeBadInput || got != 0 {
			t.Errorf("%T %v is read as %d (%v), want BAD_INPUT", in, in, got, err)
		}
	}
}

// Text comes as UTF-8 that the database can hold.
func TestTextsOfTheWire(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"", "a", "Ünïcödé ✓ 😀", "\n\t\"\\", "\u2028", "\ufffd"} {
		if got, err := ParseText(in); err != nil || got != in {
			t.Errorf("%q is read as %q (%v)", in, got, err)
		}
	}
	for _, in := range []any{"a\x00b", "\x00", "\xff", "a\xc3", "\xed\xa0\x80", nil, 1, true, json.Number("1"), []any{"a"}} {
		if got, err := ParseText(in); code(err) != CodeBadInput || got != "" {
			t.Errorf("%#v is read as %q (%v), want BAD_INPUT", in, got, err)
		}
	}
}

// A text that people read has something to read, and its length is counted in characters.
func TestCheckText(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"a", " a ", strings.Repeat("€", 10)} {
		if err := CheckText(Input("name"), good, 10); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", " ", "\t\n", "\u00a0\u3000", strings.Repeat("€", 11), strings.Repeat(" ", 9) + "ab"} {
		err := CheckText(Input("name"), bad, 10)
		if code(err) != CodeBadInput || path(err) != "input.name" || !strings.HasPrefix(err.Error(), "name is 1 to 10") {
			t.Errorf("%q: %v at %s, want BAD_INPUT", bad, err, path(err))
		}
	}
}
