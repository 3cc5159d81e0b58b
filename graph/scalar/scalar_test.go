package scalar_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"countersign/graph/scalar"
	"countersign/internal/domain"
)

// TestRead: each scalar takes exactly what is of its type, in the forms in which a value can come: a
// number of a variable (json.Number), a number of a literal (int64, float64), text, and everything
// else that JSON has. What it refuses is a BAD_INPUT.
func TestRead(t *testing.T) {
	t.Parallel()
	const noon = "2026-11-29 12:00:00 +0000 UTC"
	readers := map[string]func(any) (any, error){
		"Int":      func(v any) (any, error) { return scalar.UnmarshalInt(v) },
		"BigInt":   func(v any) (any, error) { return scalar.UnmarshalBigInt(v) },
		"String":   func(v any) (any, error) { return scalar.UnmarshalString(v) },
		"ID":       func(v any) (any, error) { return scalar.UnmarshalID(v) },
		"Boolean":  func(v any) (any, error) { return scalar.UnmarshalBoolean(v) },
		"DateTime": func(v any) (any, error) { return scalar.UnmarshalDateTime(v) },
	}
	for _, c := range []struct {
		scalar string
		in     any
		want   string // as printed; "" is BAD_INPUT
	}{
		{"Int", json.Number("12"), "12"}, {"Int", int64(12), "12"}, {"Int", json.Number("2147483647"), "2147483647"}, {"Int", json.Number("-2147483648"), "-2147483648"}, {"Int", int64(0), "0"},
		{"Int", "12", ""}, {"Int", json.Number("12.0"), ""}, {"Int", json.Number("1.5"), ""}, {"Int", json.Number("1e1"), ""}, {"Int", json.Number("-0"), ""},
		{"Int", json.Number("2147483648"), ""}, {"Int", int64(math.MaxInt32 + 1), ""}, {"Int", int64(math.MinInt32 - 1), ""}, {"Int", 12.0, ""}, {"Int", true, ""}, {"Int", nil, ""}, {"Int", []any{1}, ""},

		{"BigInt", json.Number("9007199254740993"), "9007199254740993"}, {"BigInt", "9223372036854775807", "9223372036854775807"}, {"BigInt", "-9223372036854775808", "-9223372036854775808"}, {"BigInt", int64(5), "5"},
		{"BigInt", "9223372036854775808", ""}, {"BigInt", json.Number("9223372036854775808"), ""}, {"BigInt", "007", ""}, {"BigInt", "+1", ""}, {"BigInt", "-0", ""}, {"BigInt", "1e3", ""},
		{"BigInt", json.Number("1e3"), ""}, {"BigInt", json.Number("1.0"), ""}, {"BigInt", 1.0, ""}, {"BigInt", "", ""}, {"BigInt", " 1", ""}, {"BigInt", "0x1", ""}, {"BigInt", "1_0", ""}, {"BigInt", true, ""}, {"BigInt", nil, ""},

		{"String", "€😀\n", "€😀\n"}, {"String", "a\x00b", ""}, {"String", "\xff", ""}, {"String", json.Number("1"), ""}, {"String", int64(1), ""}, {"String", true, ""}, {"String", nil, ""},
		{"ID", "inv_x", "inv_x"}, {"ID", "a\x00", ""}, {"ID", json.Number("1"), ""}, {"ID", int64(1), ""}, {"ID", 1.5, ""}, {"ID", nil, ""},
		{"Boolean", true, "true"}, {"Boolean", false, "false"}, {"Boolean", "true", ""}, {"Boolean", json.Number("1"), ""}, {"Boolean", int64(0), ""}, {"Boolean", nil, ""},

		{"DateTime", "2026-11-29T12:00:00Z", noon}, {"DateTime", "2026-11-29T12:00:00.000000Z", noon}, {"DateTime", "2026-11-29T14:30:00+02:30", noon},
		{"DateTime", "2026-11-29T12:00:00.1Z", "2026-11-29 12:00:00.1 +0000 UTC"}, {"DateTime", "2026-11-29T12:00:00.123456Z", "2026-11-29 12:00:00.123456 +0000 UTC"},
		{"DateTime", "2026-11-29T12:00:00.1234567Z", ""}, {"DateTime", "2026-11-29T12:00:00", ""}, {"DateTime", "2026-11-29 12:00:00Z", ""}, {"DateTime", "2026-11-29t12:00:00z", ""}, {"DateTime", "2026-11-29", ""},
		{"DateTime", "2026-02-30T12:00:00Z", ""}, {"DateTime", "2026-11-29T24:00:00Z", ""}, {"DateTime", "2026-11-29T12:00:60Z", ""}, {"DateTime", "2026-11-29T12:00:00,5Z", ""}, {"DateTime", "", ""}, {"DateTime", json.Number("1764417600"), ""}, {"DateTime", nil, ""},
	} {
		got, err := readers[c.scalar](c.in)
		var refusal *domain.Refusal
		switch refused := errors.As(err, &refusal) && refusal.Code == domain.CodeBadInput; {
		case c.want == "" && !refused:
			t.Errorf("%s takes %T %v as %v (%v), want BAD_INPUT", c.scalar, c.in, c.in, got, err)
		case c.want != "" && (err != nil || fmt.Sprint(got) != c.want):
			t.Errorf("%s takes %T %v as %v (%v), want %s", c.scalar, c.in, c.in, got, err, c.want)
		}
	}
}

// TestWritten: a BigInt is a JSON string, a DateTime is UTC with six digits, and what was written can
// be read again as the same value.
func TestWritten(t *testing.T) {
	t.Parallel()
	east := time.FixedZone("east", 2*60*60+30*60)
	for want, m := range map[string]graphql.Marshaler{
		`"9223372036854775807"`:         scalar.MarshalBigInt(math.MaxInt64),
		`"-9223372036854775808"`:        scalar.MarshalBigInt(math.MinInt64),
		`2147483647`:                    scalar.MarshalInt(math.MaxInt32),
		`"2026-11-29T12:00:00.000000Z"`: scalar.MarshalDateTime(time.Date(2026, 11, 29, 14, 30, 0, 0, east)),
		`"2026-11-29T12:00:00.000001Z"`: scalar.MarshalDateTime(time.Date(2026, 11, 29, 12, 0, 0, 1999, time.UTC)),
		`"a\"\u003c\n€"`:                scalar.MarshalString("a\"<\n€"),
		`"inv_x"`:                       scalar.MarshalID("inv_x"),
		`true`:                          scalar.MarshalBoolean(true),
	} {
		var b strings.Builder
		m.MarshalGQL(&b)
		var got, wanted any
		if err := json.Unmarshal([]byte(b.String()), &got); err != nil {
			t.Errorf("%s is no JSON: %v", b.String(), err)
			continue
		}
		if err := json.Unmarshal([]byte(want), &wanted); err != nil || got != wanted {
			t.Errorf("written as %s, want %s", b.String(), want)
		}
	}
}
