package domain

import (
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// formats are those that a series may have: literals and placeholders, with one number among them.
func formats() *rapid.Generator[NumberFormat] {
	return rapid.Custom(func(t *rapid.T) NumberFormat {
		piece := rapid.OneOf(
			rapid.SampledFrom([]string{"{CODE}", "{YYYY}", "{YY}", "{MM}", "{DD}", "{FY}"}),
			rapid.StringMatching(`[A-Za-z0-9 ./_#-]{1,3}`),
		)
		number := rapid.SampledFrom([]string{"{N}", "{N:1}", "{N:2}", "{N:3}", "{N:5}", "{N:18}"})
		before, after := rapid.SliceOfN(piece, 0, 3).Draw(t, "before"), rapid.SliceOfN(piece, 0, 2).Draw(t, "after")
		return NumberFormat(strings.TrimSpace(strings.Join(before, "") + number.Draw(t, "number") + strings.Join(after, "")))
	})
}

func days() *rapid.Generator[Date] {
	return rapid.Custom(func(t *rapid.T) Date {
		return NewDate(rapid.IntRange(1000, 9998).Draw(t, "year"), time.Month(rapid.IntRange(1, 12).Draw(t, "month")), rapid.IntRange(1, 28).Draw(t, "day"))
	})
}

// A series never prints one number for two, on whatever days they are issued: the printed number
// tells the number. (That SQL prints the same is tested where invoices are allocated.)
func TestNumbersPrintApart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		format, code := formats().Draw(t, "format"), rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9_-]{0,3}`).Draw(t, "code")
		if err := format.Check(code); err != nil {
			t.Fatalf("%s is refused: %v", format, err)
		}
		start := rapid.Int32Range(1, 12).Draw(t, "start")
		n := rapid.OneOf(rapid.Int64Range(1, 1200), rapid.Int64Range(1, math.MaxInt64)).Draw(t, "n")
		// The most similar other numbers: another last digit, a digit more or fewer, the same with zeros.
		m := rapid.SampledFrom([]int64{n ^ 1, n + 9, n / 10, n % 1000, n%100*10 + 1, n % 1_000_000_000 * 1000}).Draw(t, "m")
		if m < 1 || m == n {
			m = n%math.MaxInt64 + 1
		}
		one := format.On(code, days().Draw(t, "day"), start).Print(n)
		two := format.On(code, days().Draw(t, "other day"), start).Print(m)
		if one == two {
			t.Errorf("%s prints %d and %d as %s", format, n, m, one)
		}
	})
}

// What Check accepts prints numbers of plain characters that fit, on every day; and it takes any
// text without harm.
func TestCheckedFormatsFit(t *testing.T) {
	t.Parallel()
	plain := regexp.MustCompile(`^[A-Za-z0-9 ./_#-]+$`)
	rapid.Check(t, func(t *rapid.T) {
		format := rapid.OneOf(
			rapid.StringMatching(`([A-Z{}:/ -]|\{N(:[0-9]{1,2})?\}|\{(CODE|YYYY|YY|MM|DD|FY|N)\}){0,12}`),
			rapid.String(),
			rapid.Map(formats(), func(f NumberFormat) string { return string(f) + strings.Repeat("{YYYY}", 9) }),
		).Draw(t, "format")
		code := rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9_-]{0,19}`).Draw(t, "code")
		f := NumberFormat(format)
		if f.Check(code) != nil {
			return
		}
		n := rapid.Int64Range(1, math.MaxInt64).Draw(t, "n")
		printed := f.On(code, days().Draw(t, "day"), rapid.Int32Range(1, 12).Draw(t, "start")).Print(n)
		if len(printed) > maxNumberLength || !plain.MatchString(printed) {
			t.Errorf("%q prints %q", format, printed)
		}
	})
}
