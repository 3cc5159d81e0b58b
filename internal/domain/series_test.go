package domain

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// rule is a series that numbers with the code INV, as others have it by default.
func rule(format NumberFormat, change ...func(*SeriesRule)) SeriesRule {
	r := SeriesRule{
		Code: "INV", Format: format, Reset: ResetNever, FiscalYearStart: 1, MaxLength: MaxSeriesLength,
		AllowedCharacters: CharactersPlain, Capacity: DefaultSeriesCapacity,
	}
	for _, c := range change {
		c(&r)
	}
	return r
}

func resets(to SeriesReset) func(*SeriesRule) { return func(r *SeriesRule) { r.Reset = to } }
func fiscal(start int32) func(*SeriesRule) {
	return func(r *SeriesRule) { r.Reset, r.FiscalYearStart = ResetFiscalYearly, start }
}
func within(length int32, capacity int64) func(*SeriesRule) {
	return func(r *SeriesRule) { r.MaxLength, r.Capacity = length, capacity }
}
func only(c SeriesCharacters) func(*SeriesRule) {
	return func(r *SeriesRule) { r.AllowedCharacters = c }
}
func coded(code string) func(*SeriesRule) { return func(r *SeriesRule) { r.Code = code } }

// What a series can number by is accepted.
func TestRulesAccepted(t *testing.T) {
	t.Parallel()
	for _, r := range []SeriesRule{
		rule("{CODE}-{N:5}"),
		rule("{N}"),
		rule("{CODE}-{YYYY}-{N:5}", resets(ResetYearly)),
		rule("{CODE}{FY}{N}", resets(ResetYearly)), // a fiscal year that starts in January is the year
		rule("{FY}{MM}{N}", resets(ResetYearly), func(r *SeriesRule) { r.FiscalYearStart = 4 }),
		rule("{YYYY}{MM}{DD}{N}", resets(ResetYearly)),
		rule("{CODE}-{YYYY}-{MM}-{N:5}", resets(ResetMonthly)),
		rule("{N}/{MM}/{FY}", resets(ResetMonthly), func(r *SeriesRule) { r.FiscalYearStart = 7 }),
		rule("{CODE}/{FY}/{N:5}", fiscal(4)),
		rule("{CODE}/{FY}/{N:5}", fiscal(1)),
		rule("{YYYY}-{N}", fiscal(1)),
		rule("{YYYY}-{MM}-{N}", fiscal(4)), // year and month tell the fiscal year
		rule("{FY}{YY}{N}", resets(ResetYearly), func(r *SeriesRule) { r.FiscalYearStart = 4 }),
		rule("F{YY}-{N:4}", resets(ResetYearly)),
		rule("{YY}-{N}", fiscal(1)),
		rule("{YY}{MM}-{N:4}", resets(ResetMonthly)),
		rule("{N}/{DD}.{MM}.{YY}", resets(ResetMonthly)),
		rule("{YY}{MM}-{N}", fiscal(4)), // year and month tell the fiscal year here too
		rule("{MM}{N}"),                 // unpadded beside digits: the length tells how many of them are the number's
		rule("{CODE}/{FY}/{N:4}", fiscal(4), within(16, 9_999), only(CharactersAlphanumericDashSlash)),
		rule("{CODE}{YYYY}{N:6}", resets(ResetYearly), only(CharactersAlphanumeric)),
		rule(NumberFormat(strings.Repeat("x", 58)+"{N}"), within(64, 999_999)),
		rule("{CODE}{CODE}{N}", coded(strings.Repeat("C", 20))),
	} {
		if err := r.Check(); err != nil {
			t.Errorf("%s with reset %s is refused: %v", r.Format, r.Reset, err)
		}
	}
}

// What goes wrong is refused before it can, and the answer says what, and when.
func TestRulesRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule SeriesRule
		says string
	}{
		{rule("IN/{FY}/{N:5}", fiscal(4), within(16, DefaultSeriesCapacity)),
			"at number 100000 the number would have 17 characters, and at most 16 are allowed"},
		{rule("{CODE}/{FY}/{N:4}", fiscal(4), within(16, 10_000)), "at number 10000 the number would have 17 characters"},
		{rule("{CODE}/{FY}/{N:5}", fiscal(4), within(16, 1)), "at number 1 the number would have 17 characters"},
		{rule("{CODE}-{N}", within(4, 1)), "at number 1 the number would have 5 characters, and at most 4 are allowed"},
		{rule(NumberFormat(strings.Repeat("x", 59) + "{N}")), "at number 100000 the number would have 65 characters, and at most 64"},
		{rule("{CODE}{CODE}{CODE}{N:5}", coded(strings.Repeat("C", 20))), "at number 1 the number would have 65 characters"},

		{rule("{CODE}-{N:5}", resets(ResetYearly)), "would print INV-00001 twice, on 2026-12-15 and on 2027-01-15"},
		{rule("{CODE}-{N:5}", resets(ResetYearly)), "tells the periods apart has {YYYY}"},
		{rule("{CODE}-{MM}-{N}", resets(ResetYearly)), "would print INV-01-1 twice, on 2026-01-15 and on 2027-01-15"},
		{rule("{FY}-{N}", resets(ResetYearly), func(r *SeriesRule) { r.FiscalYearStart = 4 }), "would print 2026-27-1 twice, on 2026-12-15 and on 2027-01-15"},
		{rule("{YYYY}-{N}", resets(ResetMonthly)), "would print 2026-1 twice, on 2026-01-15 and on 2026-02-15"},
		{rule("{MM}-{N}", resets(ResetMonthly)), "on 2026-01-15 and on 2027-01-15"},
		{rule("{YYYY}-{N}", resets(ResetMonthly)), "has {YYYY} or {YY}, and {MM}"},
		{rule("{YY}-{N}", resets(ResetMonthly)), "would print 26-1 twice, on 2026-01-15 and on 2026-02-15"},
		{rule("{YY}-{N}", fiscal(4)), "would print 26-1 twice, on 2026-03-15 and on 2026-04-15"},
		{rule("{YYYY}-{N}", fiscal(4)), "would print 2026-1 twice, on 2026-03-15 and on 2026-04-15"},
		{rule("{YYYY}-{N}", fiscal(4)), "has {FY}"},
		{rule("{N}", fiscal(1)), "on 2026-12-15 and on 2027-01-15"},

		{rule("{CODE} {N}", only(CharactersAlphanumericDashSlash)), `prints the character ' '; allowed are letters, digits, - and /`},
		{rule("{CODE}/{N}", coded("A_B"), only(CharactersAlphanumericDashSlash)), `prints the character '_'`},
		{rule("{FY}{N}", fiscal(4), only(CharactersAlphanumeric)), `prints the character '-'`},
		{rule("{CODE}:{N}"), "characters other than"},
	} {
		err := c.rule.Check()
		if code(err) != CodeInvalidFormat || path(err) != "input.format" || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s, reset %s: %v (%s at %s), want %s", c.rule.Format, c.rule.Reset, err, code(err), path(err), c.says)
		}
	}
	for field, r := range map[string]SeriesRule{
		"code":                 rule("{N}", coded("")),
		"fiscalYearStartMonth": rule("{N}", fiscal(13)),
		"maxLength":            rule("{N}", within(65, 1)),
		"capacity":             rule("{N}", within(64, 0)),
	} {
		if err := r.Check(); code(err) != CodeBadInput || path(err) != "input."+field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// The largest number is the last that is printed within the length, to the digit.
func TestMaxNumber(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule SeriesRule
		want int64
	}{
		{rule("{CODE}/{FY}/{N:4}", fiscal(4), within(16, 1)), 9_999},
		{rule("{CODE}/{FY}/{N:5}", fiscal(4), within(16, 1)), 0},
		{rule("{N}", within(1, 1)), 9},
		{rule("{N:18}", within(18, 1)), 999_999_999_999_999_999},
		{rule("{N}"), 999_999_999_999_999_999},
	} {
		if got := c.rule.MaxNumber(); got != c.want {
			t.Errorf("%s in %d characters: %d, want %d", c.rule.Format, c.rule.MaxLength, got, c.want)
		}
	}
}

// The period of a day begins on its first day, at the ends of months and years too.
func TestPeriodStart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule SeriesRule
		day  Date
		want Date
	}{
		{rule("", resets(ResetNever)), NewDate(2026, 5, 5), NewDate(1, 1, 1)},
		{rule("", resets(ResetYearly)), NewDate(2026, 12, 31), NewDate(2026, 1, 1)},
		{rule("", resets(ResetYearly)), NewDate(2027, 1, 1), NewDate(2027, 1, 1)},
		{rule("", resets(ResetMonthly)), NewDate(2028, 2, 29), NewDate(2028, 2, 1)},
		{rule("", resets(ResetMonthly)), NewDate(2028, 3, 1), NewDate(2028, 3, 1)},
		{rule("", fiscal(4)), NewDate(2027, 3, 31), NewDate(2026, 4, 1)},
		{rule("", fiscal(4)), NewDate(2027, 4, 1), NewDate(2027, 4, 1)},
		{rule("", fiscal(12)), NewDate(2026, 11, 30), NewDate(2025, 12, 1)},
		{rule("", fiscal(3)), NewDate(2028, 2, 29), NewDate(2027, 3, 1)},
		{rule("", fiscal(1)), NewDate(2026, 12, 31), NewDate(2026, 1, 1)},
	} {
		if got := c.rule.PeriodStart(c.day); got != c.want {
			t.Errorf("the period of %s, reset %s from month %d, begins on %s, want %s", c.day, c.rule.Reset, c.rule.FiscalYearStart, got, c.want)
		}
	}
}

// A counter moves on within its period, starts anew in a later one, and never goes back.
func TestCounterMoves(t *testing.T) {
	t.Parallel()
	yearly := rule("{YYYY}-{N}", resets(ResetYearly))
	at := func(next int64, last Date) CounterState {
		return CounterState{PeriodStart: NewDate(2026, 1, 1), NextNumber: next, MaxNumber: 9_999, LastIssueDate: &last}
	}
	asked := func(d Date) *Date { return &d }
	unused := CounterState{PeriodStart: UnusedPeriod, NextNumber: 1, MaxNumber: 9_999}
	for _, c := range []struct {
		name    string
		state   CounterState
		asked   *Date
		today   Date
		want    CounterMove
		code    Code
		says    string
		mustNot string
	}{
		{name: "the first number", state: unused, today: NewDate(2026, 5, 1),
			want: CounterMove{IssueDate: NewDate(2026, 5, 1), PeriodStart: NewDate(2026, 1, 1), NextNumber: 1}},
		{name: "the first number, in a past year", state: unused, asked: asked(NewDate(2020, 5, 1)), today: NewDate(2026, 5, 1),
			want: CounterMove{IssueDate: NewDate(2020, 5, 1), PeriodStart: NewDate(2020, 1, 1), NextNumber: 1}},
		{name: "in the period", state: at(7, NewDate(2026, 5, 1)), today: NewDate(2026, 12, 31),
			want: CounterMove{IssueDate: NewDate(2026, 12, 31), PeriodStart: NewDate(2026, 1, 1), NextNumber: 7}},
		{name: "in the next", state: at(7, NewDate(2026, 12, 31)), today: NewDate(2027, 1, 1),
			want: CounterMove{IssueDate: NewDate(2027, 1, 1), PeriodStart: NewDate(2027, 1, 1), NextNumber: 1, StartsAnew: true, Closes: true, LastNumber: 6}},
		{name: "years later", state: at(7, NewDate(2026, 12, 31)), today: NewDate(2031, 6, 1),
			want: CounterMove{IssueDate: NewDate(2031, 6, 1), PeriodStart: NewDate(2031, 1, 1), NextNumber: 1, StartsAnew: true, Closes: true, LastNumber: 6}},
		{name: "a clock behind", state: at(7, NewDate(2026, 1, 1)), today: NewDate(2025, 12, 31),
			want: CounterMove{IssueDate: NewDate(2026, 1, 1), PeriodStart: NewDate(2026, 1, 1), NextNumber: 7}},
		{name: "a day of the year before", state: at(7, NewDate(2026, 1, 1)), asked: asked(NewDate(2025, 12, 31)), today: NewDate(2026, 1, 1),
			code: CodePeriodClosed, says: "2025-12-31 lies in a period that is closed"},
		{name: "an earlier day of the year", state: at(7, NewDate(2026, 5, 2)), asked: asked(NewDate(2026, 5, 1)), today: NewDate(2026, 5, 2),
			code: CodePeriodClosed, says: "chronological", mustNot: "lies in a period"},
		{name: "a day to come", state: at(7, NewDate(2026, 5, 2)), asked: asked(NewDate(2027, 1, 1)), today: NewDate(2026, 12, 31), code: CodeBadInput, says: "future"},
		{name: "the last number", state: at(9_999, NewDate(2026, 5, 2)), today: NewDate(2026, 5, 2),
			want: CounterMove{IssueDate: NewDate(2026, 5, 2), PeriodStart: NewDate(2026, 1, 1), NextNumber: 9_999}},
		{name: "past the last number", state: at(10_000, NewDate(2026, 5, 2)), today: NewDate(2026, 5, 2), code: CodeSeriesExhausted, says: "begins on 2027-01-01"},
		{name: "past the last number, in the next period", state: at(10_000, NewDate(2026, 5, 2)), today: NewDate(2027, 1, 1),
			want: CounterMove{IssueDate: NewDate(2027, 1, 1), PeriodStart: NewDate(2027, 1, 1), NextNumber: 1, StartsAnew: true, Closes: true, LastNumber: 9_999}},
	} {
		got, err := yearly.Move(c.state, c.asked, c.today)
		if code(err) != c.code || got != c.want {
			t.Errorf("%s: %+v (%v), want %+v %s", c.name, got, err, c.want, c.code)
		}
		if err != nil && (!strings.Contains(err.Error(), c.says) || c.mustNot != "" && strings.Contains(err.Error(), c.mustNot)) {
			t.Errorf("%s: %v, want %q in it", c.name, err, c.says)
		}
	}
}

// Two series that could print one number are told apart from two that could not.
func TestPrintsLike(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		one, two SeriesRule
		want     bool
	}{
		{rule("{CODE}-{N:5}", coded("A")), rule("{CODE}-{N:5}", coded("B")), false},
		{rule("{CODE}-{N:5}", coded("A")), rule("A-{N}"), true},
		{rule("{CODE}{N}", coded("A")), rule("{CODE}{N}", coded("A1")), true},                                            // A11
		{rule("{CODE}{N}", coded("A")), rule("{CODE}{N}", coded("A0")), false},                                           // no number begins with 0
		{rule("{CODE}{N:3}", coded("A")), rule("{CODE}{N}", coded("A0")), true},                                          // A011
		{rule("{CODE}-{N:5}", coded("A")), rule("{CODE}-{N:5}", coded("A-1")), false},                                    // A-1-00001 has a dash
		{rule("A{N:5}"), rule("A{YYYY}{N:5}", resets(ResetYearly)), true},                                                // A202600001
		{rule("A-{N:5}"), rule("A-{YYYY}-{N:5}", resets(ResetYearly)), false},                                            //
		{rule("A-{YYYY}-{N:5}", resets(ResetYearly)), rule("A-{FY}-{N:5}", fiscal(4)), false},                            //
		{rule("A-{YYYY}-{N:5}", resets(ResetYearly)), rule("A-{FY}-{N:5}", fiscal(1)), true},                             //
		{rule("A{YYYY}{N:2}", resets(ResetYearly)), rule("A{YYYY}{MM}{N:2}", resets(ResetMonthly)), true},                // A20261101
		{rule("A{YYYY}{N:4}", within(9, 1), resets(ResetYearly)), rule("A{YYYY}{MM}{N:4}", resets(ResetMonthly)), false}, // never as long
		{rule("{N}/{YYYY}"), rule("{N}/20{YY}"), true},
		{rule("{N}/{YYYY}"), rule("{N}/A"), false},
	} {
		if got, back := c.one.PrintsLike(c.two), c.two.PrintsLike(c.one); got != c.want || back != c.want {
			t.Errorf("%s (%s) and %s (%s): %v and %v, want %v", c.one.Format, c.one.Code, c.two.Format, c.two.Code, got, back, c.want)
		}
	}
}

// Every preset can number with the codes that people use, and its law is named where it is broken.
func TestPresets(t *testing.T) {
	t.Parallel()
	for _, p := range PresetRules {
		r := rule(p.Format, func(r *SeriesRule) {
			r.Reset, r.FiscalYearStart, r.MaxLength = p.Reset, p.FiscalYearStart, p.MaxLength
			r.AllowedCharacters, r.Capacity, r.Preset = p.AllowedCharacters, p.Capacity, &p.Preset
		})
		if err := r.Check(); err != nil {
			t.Errorf("%s refuses its own rule: %v", p.Preset, err)
		}
		if _, err := ParseTimeZone(p.TimeZone); err != nil || p.Source == "" || p.Summary == "" || p.Preset.Rule() != p {
			t.Errorf("%s is not whole: %v", p.Preset, err)
		}
		if (p.MaxLengthSource == nil) != (p.MaxLength == MaxSeriesLength) {
			t.Errorf("%s: %d characters, and their source is %v", p.Preset, p.MaxLength, p.MaxLengthSource)
		}
		stricter := r
		stricter.AllowedCharacters, stricter.Format = CharactersAlphanumeric, "{CODE}{YYYY}{MM}{N:4}"
		if err := stricter.Check(); err != nil && code(err) != CodeInvalidFormat {
			t.Errorf("%s refuses what is stricter: %v", p.Preset, err)
		}
	}
	india := PresetIndia
	r := rule("{CODE}/{FY}/{N:4}", fiscal(4), within(16, 9_999), only(CharactersAlphanumericDashSlash), func(r *SeriesRule) { r.Preset = &india })
	for field, change := range map[string]func(*SeriesRule){
		"maxLength": within(17, 1), "allowedCharacters": only(CharactersPlain), "fiscalYearStartMonth": fiscal(1),
	} {
		laxer := r
		change(&laxer)
		err := laxer.Check()
		var violated *PresetViolatedError
		if !errors.As(err, &violated) || path(err) != "input."+field || violated.Preset != india || !strings.Contains(err.Error(), "CGST Rules 2017, rule 46 (b)") {
			t.Errorf("India with another %s: %v at %s", field, err, path(err))
		}
	}
	long := r
	long.Format = "{CODE}/{FY}/{N:5}"
	if err := long.Check(); err == nil || !strings.Contains(err.Error(), "at number 1 the number would have 17 characters, and at most 16 are allowed (CGST Rules 2017, rule 46 (b))") {
		t.Errorf("a number of 17 characters in India: %v", err)
	}
	long.MaxLength = 15
	if err := long.Check(); err == nil || strings.Contains(err.Error(), "CGST") {
		t.Errorf("a bound of one's own: %v; India's law says nothing of it", err)
	}
}

// A length is said to come from where it comes from: a law that sets none is not named.
func TestALengthNamesItsOwnSource(t *testing.T) {
	t.Parallel()
	for preset, want := range map[SeriesPreset]string{
		PresetIndia: " (CGST Rules 2017, rule 46 (b))", PresetItaly: " (FatturaPA 1.2, element 2.1.1.4 Numero)",
		PresetSpain: " (invoicing records of Orden HAC/1177/2024, NumSerieFactura)", PresetEU: "", PresetFrance: "", PresetGermany: "",
	} {
		p := preset.Rule()
		long := rule(NumberFormat("{CODE}"+strings.Repeat("x", int(p.MaxLength))+"{N}"), within(p.MaxLength, 1), only(p.AllowedCharacters), func(r *SeriesRule) {
			r.Preset, r.Reset, r.FiscalYearStart = &preset, ResetNever, p.FiscalYearStart
		})
		if err := long.Check(); code(err) != CodeInvalidFormat || !strings.HasSuffix(err.Error(), fmt.Sprintf("at most %d are allowed%s", p.MaxLength, want)) {
			t.Errorf("%s: %v, want the source %q", preset, err, want)
		}
		if want == "" {
			continue
		}
		laxer := long
		laxer.MaxLength++
		var violated *PresetViolatedError
		if err := laxer.Check(); !errors.As(err, &violated) || !strings.Contains(want, violated.Source) || !strings.HasPrefix(err.Error(), violated.Source+": ") {
			t.Errorf("%s with a longer one: %v", preset, err)
		}
	}
}
