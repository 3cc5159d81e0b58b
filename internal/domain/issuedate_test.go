package domain

import (
	"errors"
	"strings"
	"testing"
)

// Numbers are chronological, whichever server's clock says what: the day of the next invoice is
// the later of today and the counter's last, unless the client asks for a day in between.
func TestIssueDate(t *testing.T) {
	t.Parallel()
	day := func(n int) Date { return NewDate(2026, 11, n) }
	asked := func(n int) *Date { d := day(n); return &d }
	var unused Date
	for _, c := range []struct {
		name        string
		requested   *Date
		last, today Date
		want        Date
		code        Code
	}{
		{name: "an unused series", last: unused, today: day(10), want: day(10)},
		{name: "the same day", last: day(10), today: day(10), want: day(10)},
		{name: "a later day", last: day(9), today: day(10), want: day(10)},
		{name: "a clock behind the counter's", last: day(11), today: day(10), want: day(11)},
		{name: "today asked for", requested: asked(10), last: day(9), today: day(10), want: day(10)},
		{name: "the last day asked for", requested: asked(9), last: day(9), today: day(10), want: day(9)},
		{name: "a day in between", requested: asked(9), last: day(8), today: day(10), want: day(9)},
		{name: "the past on an unused series", requested: asked(1), last: unused, today: day(10), want: day(1)},
		{name: "the counter's day, by a clock behind it", requested: asked(11), last: day(11), today: day(10), want: day(11)},
		{name: "tomorrow", requested: asked(11), last: day(9), today: day(10), code: CodeBadInput},
		{name: "tomorrow on an unused series", requested: asked(11), last: unused, today: day(10), code: CodeBadInput},
		{name: "after the counter's day, by a clock behind it", requested: asked(12), last: day(11), today: day(10), code: CodeBadInput},
		{name: "before the last", requested: asked(8), last: day(9), today: day(10), code: CodePeriodClosed},
		{name: "today, by a clock behind the counter's", requested: asked(10), last: day(11), today: day(10), code: CodePeriodClosed},
	} {
		got, err := IssueDate(c.requested, c.last, c.today)
		if code(err) != c.code || c.code == "" && (err != nil || got != c.want) {
			t.Errorf("%s: %s (%v), want %s %s", c.name, got, err, c.want, c.code)
		}
		if c.code != "" && path(err) != "input.issueDate" {
			t.Errorf("%s: the error is about %s", c.name, path(err))
		}
		var closed *PeriodClosedError
		if c.code == CodePeriodClosed && (!errors.As(err, &closed) || closed.LastIssueDate != c.last) {
			t.Errorf("%s: %#v does not tell the last issue date", c.name, err)
		}
		if c.code == CodePeriodClosed && !strings.Contains(err.Error(), "already issued a document on "+c.last.String()) { // a series numbers either kind
			t.Errorf("%s: it says %v", c.name, err)
		}
	}
}
