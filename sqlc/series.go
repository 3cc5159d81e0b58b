package sqlc

import "countersign/internal/domain"

// Rule is how the series numbers.
func (s *InvoiceSeries) Rule() domain.SeriesRule {
	return domain.SeriesRule{
		Code: s.Code, Format: s.Format, Reset: s.Reset, FiscalYearStart: s.FiscalYearStart,
		MaxLength: s.MaxLength, AllowedCharacters: s.AllowedCharacters, Capacity: s.Capacity, Preset: s.Preset,
	}
}

// MaxNumber is the largest number that the series can print within its maximum length.
func (s *InvoiceSeries) MaxNumber() int64 { return s.Rule().MaxNumber() }

// State is where the counter stands.
func (c *SeriesCounter) State() domain.CounterState {
	return domain.CounterState{
		PeriodStart: c.PeriodStart, NextNumber: c.NextNumber, MaxNumber: c.MaxNumber, LastIssueDate: c.LastIssueDate,
	}
}

// CurrentPeriod is the first day of the period that the counter is in; nil before the first
// number, and where the series never resets.
func (c *SeriesCounter) CurrentPeriod() *domain.Date {
	if c.PeriodStart == domain.UnusedPeriod {
		return nil
	}
	return &c.PeriodStart
}

// Period is the first day of the period that was changed; nil where the series never resets, or had no
// number yet.
func (c *SeriesChange) Period() *domain.Date {
	if c.PeriodStart == domain.UnusedPeriod {
		return nil
	}
	return &c.PeriodStart
}
