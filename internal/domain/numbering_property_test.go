package domain

import (
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

// rules are those that a series may be asked to have: many of them are refused.
func rules() *rapid.Generator[SeriesRule] {
	return rapid.Custom(func(t *rapid.T) SeriesRule {
		return SeriesRule{
			Code:              rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9_-]{0,2}`).Draw(t, "code"),
			Format:            formats().Draw(t, "format"),
			Reset:             rapid.SampledFrom([]SeriesReset{ResetNever, ResetYearly, ResetMonthly, ResetFiscalYearly}).Draw(t, "reset"),
			FiscalYearStart:   rapid.SampledFrom([]int32{1, 2, 4, 10, 12}).Draw(t, "start"),
			MaxLength:         rapid.SampledFrom([]int32{8, 16, MaxSeriesLength}).Draw(t, "length"),
			AllowedCharacters: rapid.SampledFrom([]SeriesCharacters{CharactersPlain, CharactersAlphanumericDashSlash, CharactersAlphanumeric}).Draw(t, "characters"),
			Capacity:          rapid.SampledFrom([]int64{9, 9_999, DefaultSeriesCapacity}).Draw(t, "capacity"),
		}
	})
}

// accepted are those that are not refused.
func accepted() *rapid.Generator[SeriesRule] {
	return rules().Filter(func(r SeriesRule) bool { return r.Check() == nil })
}

func days() *rapid.Generator[Date] {
	return rapid.Custom(func(t *rapid.T) Date {
		return NewDate(rapid.IntRange(1, 9900).Draw(t, "year"), time.Month(rapid.IntRange(1, 12).Draw(t, "month")), rapid.IntRange(1, 28).Draw(t, "day"))
	})
}

// daysLike are days that share parts with another: the same day of other months, of other years,
// of another century; the day before and after.
func daysLike(day Date) *rapid.Generator[Date] {
	return rapid.Custom(func(t *rapid.T) Date {
		months := rapid.OneOf(rapid.IntRange(0, 24), rapid.SampledFrom([]int{1200, 1188, 1212})).Draw(t, "months later")
		return Date{day.AddDate(0, months, rapid.IntRange(-1, 1).Draw(t, "days later"))}
	})
}

// numbersLike are numbers that look like another: another last digit, a digit more or fewer, the
// same with zeros.
func numbersLike(n, largest int64) *rapid.Generator[int64] {
	return rapid.Map(rapid.SampledFrom([]int64{n, n ^ 1, n + 9, n / 10, n % 10, n % 100, n % 1000, n%100*10 + 1, n % 1_000_000_000 * 1000}), func(m int64) int64 {
		return min(max(m, 1), largest)
	})
}

// No series prints two of its numbers alike: whatever two days and numbers, if the periods or the
// numbers differ, so does what is printed. Only {YY} takes one number of two periods for the same, a century apart.
func TestNumbersPrintApart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := accepted().Draw(t, "rule")
		largest := r.MaxNumber()
		day := days().Draw(t, "day")
		other := daysLike(day).Draw(t, "other day")
		n := rapid.OneOf(rapid.Int64Range(1, min(1200, largest)), rapid.Int64Range(1, largest)).Draw(t, "n")
		m := numbersLike(n, largest).Draw(t, "m")
		if n == m && r.PeriodStart(day) == r.PeriodStart(other) {
			return
		}
		years := other.Year() - day.Year()
		if n == m && years > 98 && strings.Contains(string(r.Format), "{YY}") {
			return
		}
		if one, two := r.On(day).Print(n), r.On(other).Print(m); one == two {
			t.Errorf("%s, reset %s, prints number %d of %s and number %d of %s as %s", r.Format, r.Reset, n, day, m, other, one)
		}
	})
}

// A format that is refused for its reset does print a number twice: nothing is refused that would
// do no harm.
func TestRefusedFormatsPrintTwice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := rules().Draw(t, "rule")
		r.MaxLength, r.Capacity, r.AllowedCharacters = MaxSeriesLength, 1, CharactersPlain
		err := r.Check()
		if err == nil || !strings.Contains(err.Error(), "twice") {
			return
		}
		words := strings.Fields(err.Error()[strings.Index(err.Error(), " twice, on "):])
		var one, two Date
		if one.UnmarshalGQL(words[2]) != nil || two.UnmarshalGQL(strings.TrimSuffix(words[5], ":")) != nil {
			t.Fatalf("no days in %q", err)
		}
		if r.PeriodStart(one) == r.PeriodStart(two) || r.On(one) != r.On(two) {
			t.Errorf("%s, reset %s, tells %s from %s", r.Format, r.Reset, one, two)
		}
	})
}

// What is accepted prints numbers that fit, of allowed characters, up to its largest number and on
// every day; the next number would not fit.
func TestAcceptedRulesFit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := accepted().Draw(t, "rule")
		largest := r.MaxNumber()
		if largest < r.Capacity {
			t.Fatalf("%s holds %d numbers of %d", r.Format, largest, r.Capacity)
		}
		on := r.On(days().Draw(t, "day"))
		printed := on.Print(rapid.OneOf(rapid.Just(largest), rapid.Int64Range(1, largest)).Draw(t, "n"))
		if len(printed) > int(r.MaxLength) || strings.Trim(printed, characterSets[r.AllowedCharacters].set) != "" {
			t.Errorf("%q prints %q", r.Format, printed)
		}
		if more := on.Print(largest + 1); len(more) <= int(r.MaxLength) && largest < 999_999_999_999_999_999 {
			t.Errorf("%q is said to end at %d, and prints %q", r.Format, largest, more)
		}
	})
}

// Any text is taken for a format, or refused, without harm.
func TestAnyTextIsCheckedWithoutHarm(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := rules().Draw(t, "rule")
		r.Format = NumberFormat(rapid.OneOf(
			rapid.StringMatching(`([A-Z{}:/ -]|\{N(:[0-9]{1,2})?\}|\{(CODE|YYYY|YY|MM|DD|FY|N)\}){0,12}`), rapid.String(),
		).Draw(t, "format"))
		if r.Check() == nil {
			if printed := r.On(days().Draw(t, "day")).Print(r.MaxNumber()); len(printed) > int(r.MaxLength) {
				t.Errorf("%q prints %q", r.Format, printed)
			}
		}
	})
}

// Two series that are told apart print no number alike.
func TestSeriesToldApartPrintApart(t *testing.T) {
	t.Parallel()
	apart := 0
	rapid.Check(t, func(t *rapid.T) {
		one := accepted().Draw(t, "one")
		two := accepted().Draw(t, "two")
		if rapid.Bool().Draw(t, "alike") { // the same format, but for the code
			if rapid.Bool().Draw(t, "code beside number") {
				one.Format, one.Reset = rapid.SampledFrom([]NumberFormat{"{CODE}{N}", "{CODE}{N:2}", "{N}{CODE}"}).Draw(t, "plain format"), ResetNever
			}
			code := one.Code + rapid.SampledFrom([]string{"", "0", "1", "-", "-1"}).Draw(t, "more")
			if two = one; len(code) <= 20 {
				two.Code = code
			}
			two.Reset = rapid.SampledFrom([]SeriesReset{one.Reset, ResetNever}).Draw(t, "reset")
		}
		if one.Check() != nil || two.Check() != nil || one.PrintsLike(two) {
			return
		}
		apart++
		day := days().Draw(t, "day")
		mine, others := one.On(day), two.On(daysLike(day).Draw(t, "other day"))
		printed := map[string]bool{}
		for n := range min(300, one.MaxNumber()) {
			printed[mine.Print(n+1)] = true
		}
		for n := range min(300, two.MaxNumber()) {
			if text := others.Print(n + 1); printed[text] {
				t.Fatalf("%s (%s) and %s (%s) both print %s", one.Format, one.Code, two.Format, two.Code, text)
			}
		}
	})
	if apart < 10 {
		t.Errorf("only %d pairs were told apart", apart)
	}
}

// A series at work, against the plainest model of it: for each period the last number it gave.
// Clocks jump ahead and back, days are asked for, periods are skipped. Every number follows the
// one before in its period, days never step back, and each period that gave a number and was left
// is closed once, with its last number.
func TestCounterAgainstModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := accepted().Draw(t, "rule")
		counter := CounterState{PeriodStart: UnusedPeriod, NextNumber: 1, MaxNumber: r.MaxNumber()}
		last, closed, printed := map[Date]int64{}, map[Date]int64{}, map[string]bool{}
		var latest Date
		today := days().Draw(t, "today")
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			today = Date{today.AddDate(0, rapid.IntRange(-1, 14).Draw(t, "months"), rapid.IntRange(-20, 20).Draw(t, "days"))}
			var asked *Date
			if rapid.IntRange(0, 3).Draw(t, "ask") == 0 {
				day := Date{today.AddDate(0, rapid.IntRange(-14, 1).Draw(t, "months ago"), 0)}
				asked = &day
			}
			to, err := r.Move(counter, asked, today)
			legal := asked == nil || !asked.Before(latest.Time) && !(asked.After(today.Time) && asked.After(latest.Time))
			if period := r.PeriodStart(latest); code(err) == CodeSeriesExhausted {
				if last[period] < r.MaxNumber() {
					t.Fatalf("exhausted at %d of %d", last[period], r.MaxNumber())
				}
				continue
			}
			if legal != (err == nil) {
				t.Fatalf("asked %v on %s with the last on %s: %v", asked, today, latest, err)
			}
			if err != nil {
				continue
			}
			period := r.PeriodStart(to.IssueDate)
			if to.IssueDate.Before(latest.Time) || to.PeriodStart != period || to.NextNumber != last[period]+1 {
				t.Fatalf("%+v after %d in its period, the last day being %s", to, last[period], latest)
			}
			if to.Closes {
				if _, twice := closed[counter.PeriodStart]; twice || to.LastNumber != last[counter.PeriodStart] {
					t.Fatalf("%s is closed at %d (again: %v), its last number is %d", counter.PeriodStart, to.LastNumber, twice, last[counter.PeriodStart])
				}
				closed[counter.PeriodStart] = to.LastNumber
			}
			text := r.On(to.IssueDate).Print(to.NextNumber)
			if printed[text] {
				t.Fatalf("%s is printed twice", text)
			}
			printed[text], last[period], latest = true, to.NextNumber, to.IssueDate
			counter = CounterState{PeriodStart: to.PeriodStart, NextNumber: to.NextNumber + 1, MaxNumber: counter.MaxNumber, LastIssueDate: &latest}
			counter.LastIssueDate = &to.IssueDate
		}
		if len(closed) != max(len(last)-1, 0) {
			t.Errorf("%d periods gave numbers, and %d are closed", len(last), len(closed))
		}
	})
}
