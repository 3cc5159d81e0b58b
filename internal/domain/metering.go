package domain

import (
	"database/sql/driver"
	"io"
	"time"
)

// APIKeyStatus is whether a key may be used.
type APIKeyStatus string

// A key is revoked once, for good.
const (
	APIKeyActive  APIKeyStatus = "ACTIVE"
	APIKeyRevoked APIKeyStatus = "REVOKED"
)

// SettlementOutcome is where a settlement's value has gone.
type SettlementOutcome string

// The outcomes. PENDING is on its way; from there on no crash loses it.
const (
	SettlementPending          SettlementOutcome = "PENDING"
	SettlementFolded           SettlementOutcome = "FOLDED"
	SettlementFoldedWaived     SettlementOutcome = "FOLDED_WAIVED"
	SettlementBilledSeparately SettlementOutcome = "BILLED_SEPARATELY"
	SettlementSkipped          SettlementOutcome = "SKIPPED_SUB_CENT"
	SettlementNothing          SettlementOutcome = "NOTHING_TO_BILL"
)

// Month is a month of a customer's calendar: its first day.
type Month struct{ Date }

// MonthOf is the month in which t falls in a zone. The month's bounds decide, not the clock on the
// wall: where that is put back over midnight, it shows the last day once more in the new month.
func MonthOf(t time.Time, zone *time.Location) Month {
	y, m, _ := t.In(zone).Date()
	month := Month{NewDate(y, m, 1)}
	if _, end := month.Bounds(zone); !t.Before(end) {
		return Month{NewDate(y, m+1, 1)}
	}
	return month
}

// ParseMonth reads YYYY-MM.
func ParseMonth(s string) (Month, error) {
	t, err := time.Parse("2006-01", s)
	if err != nil {
		return Month{}, BadInput("a month is YYYY-MM")
	}
	return Month{Date{t}}, nil
}

// Bounds are the month's in a zone, half-open: it starts at the first and ends before the second.
func (m Month) Bounds(zone *time.Location) (start, end time.Time) {
	before := Date{m.AddDate(0, 0, -1)}
	last := Date{m.AddDate(0, 1, -1)}
	return before.End(zone), last.End(zone)
}

func (m Month) String() string { return m.Format("2006-01") }

// MarshalGQL prints YYYY-MM.
func (m Month) MarshalGQL(w io.Writer) { writeQuoted(w, m.String()) }

// UnmarshalGQL reads YYYY-MM.
func (m *Month) UnmarshalGQL(v any) (err error) {
	s, ok := v.(string)
	if !ok {
		return BadInput("a month is YYYY-MM")
	}
	*m, err = ParseMonth(s)
	return err
}

// Scan reads a date.
func (m *Month) Scan(src any) error { return m.Date.Scan(src) }

// Value is the date.
func (m Month) Value() (driver.Value, error) { return m.Date.Value() }
