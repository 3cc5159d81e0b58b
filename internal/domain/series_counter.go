package domain

import (
	"errors"
	"fmt"
)

// CounterState is where a series' counter stands.
type CounterState struct {
	PeriodStart   Date
	NextNumber    int64
	MaxNumber     int64
	LastIssueDate *Date // none before the first number
}

// CounterMove is where a counter goes for its next number.
type CounterMove struct {
	IssueDate   Date
	PeriodStart Date
	NextNumber  int64
	StartsAnew  bool // a later period than the counter's
	// Closes says that the counter leaves a period in which it has given numbers, the last of them
	// LastNumber: it is the one moment to record that.
	Closes     bool
	LastNumber int64
}

// Move decides for a counter that is held under its lock on which day, in which period and with
// which number the next document is issued. The first number of a later period is 1. A day that
// was asked for and lies in a period that the series has left, or before its last one, is
// PERIOD_CLOSED; a number that would be too long is SERIES_EXHAUSTED.
func (r SeriesRule) Move(c CounterState, requested *Date, today Date) (CounterMove, error) {
	var last Date
	if c.LastIssueDate != nil {
		last = *c.LastIssueDate
	}
	day, err := IssueDate(requested, last, today)
	if closed := (*PeriodClosedError)(nil); errors.As(err, &closed) && r.PeriodStart(*requested).Before(c.PeriodStart.Time) {
		closed.Message = fmt.Sprintf("%s lies in a period that is closed: the series is in the one that began on %s, and has issued a document on %s",
			requested, c.PeriodStart, last)
	}
	if err != nil {
		return CounterMove{}, err
	}
	to := CounterMove{IssueDate: day, PeriodStart: r.PeriodStart(day), NextNumber: c.NextNumber}
	if c.LastIssueDate != nil && to.PeriodStart.After(c.PeriodStart.Time) {
		to.StartsAnew, to.NextNumber, to.LastNumber = true, 1, c.NextNumber-1
		to.Closes = to.LastNumber >= 1
	}
	if to.NextNumber > c.MaxNumber {
		return CounterMove{}, r.exhausted(to.PeriodStart)
	}
	return to, nil
}

// exhausted says that a period has no legal number left, and what to do.
func (r SeriesRule) exhausted(period Date) error {
	advice := "make another series"
	if next, ok := r.periodAfter(period); ok {
		advice += fmt.Sprintf(", or wait for the period that begins on %s", next)
	}
	return Refuse(CodeSeriesExhausted, nil, "the series has no number left: %s; %s", r.tooLong(), advice)
}
