package domain

import (
	"database/sql/driver"
	"fmt"
	"io"
	"regexp"
	"time"
	_ "time/tzdata" // zones are part of the product: a server without them would number on the wrong day
)

// microseconds is the layout of every time on the wire: UTC, six fractional digits.
const microseconds = "2006-01-02T15:04:05.000000Z"

// FormatTime prints a time for the wire.
func FormatTime(t time.Time) string { return t.UTC().Format(microseconds) }

var timeSyntax = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)$`)

// ParseTime reads RFC 3339 with at most six fractional digits, the precision the database keeps.
func ParseTime(v any) (time.Time, error) {
	s, ok := v.(string)
	if !ok || !timeSyntax.MatchString(s) {
		return time.Time{}, BadInput("a time is RFC 3339 with at most six fractional digits, such as 2026-11-29T12:00:00.000000Z")
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if t = t.UTC(); err != nil || t.Year() < 1 || t.Year() > 9999 { // an offset may lead out of what can be printed
		return time.Time{}, BadInput("no such time")
	}
	return t, nil
}

// Version is the token that a guarded update compares: the row's updated_at, in microseconds.
// Clients treat it as opaque. It rises strictly with every write of its row.
type Version struct{ time.Time }

// VersionAt is the version of a row written at t. PostgreSQL keeps microseconds and rounds or
// truncates the rest by the encoding in use, so nothing finer ever leaves this function.
func VersionAt(t time.Time) Version { return Version{t.UTC().Truncate(time.Microsecond)} }

// Next is the successor of v for a write at now: later than v even where the clock is not.
func (v Version) Next(now time.Time) Version {
	if next := VersionAt(now); next.After(v.Time) {
		return next
	}
	return Version{v.Add(time.Microsecond)}
}

// MarshalGQL prints the version.
func (v Version) MarshalGQL(w io.Writer) { writeQuoted(w, FormatTime(v.Time)) }

// UnmarshalGQL reads a version.
func (v *Version) UnmarshalGQL(in any) (err error) {
	v.Time, err = ParseTime(in)
	return err
}

// Scan reads a timestamptz.
func (v *Version) Scan(src any) error {
	t, ok := src.(time.Time)
	if !ok {
		return fmt.Errorf("version: cannot read %T", src)
	}
	*v = VersionAt(t)
	return nil
}

// Value is the timestamptz.
func (v Version) Value() (driver.Value, error) { return v.Time, nil }

// Date is a day of the calendar, without a zone: midnight UTC inside. The zero Date is no date.
type Date struct{ time.Time }

// NewDate is a day of the calendar.
func NewDate(year int, month time.Month, day int) Date {
	return Date{time.Date(year, month, day, 0, 0, 0, 0, time.UTC)}
}

// DateOf is the day on which t falls in a zone.
func DateOf(t time.Time, zone *time.Location) Date { return NewDate(t.In(zone).Date()) }

// Begin is the moment the day begins in a zone.
func (d Date) Begin(zone *time.Location) time.Time { return Date{d.AddDate(0, 0, -1)}.End(zone) }

// End is the moment the day ends in a zone: the first of the next day. Days around a change of the
// clocks last 23 or 25 hours, and where the clocks change at midnight, midnight may be skipped or
// come twice.
func (d Date) End(zone *time.Location) time.Time {
	midnight := func(zone *time.Location) time.Time {
		return time.Date(d.Year(), d.Month(), d.Day()+1, 0, 0, 0, 0, zone)
	}
	end := midnight(zone)
	change, next := end.ZoneBounds()
	if !DateOf(end, zone).After(d.Time) { // skipped
		return next
	}
	if before := change.Add(-1).In(zone); !change.IsZero() && DateOf(before, zone).After(d.Time) { // twice
		_, offset := before.Zone()
		return midnight(time.FixedZone("", offset)).In(zone)
	}
	return end
}

func (d Date) String() string { return d.Format(time.DateOnly) }

// MarshalGQL prints YYYY-MM-DD.
func (d Date) MarshalGQL(w io.Writer) { writeQuoted(w, d.String()) }

// UnmarshalGQL reads YYYY-MM-DD.
func (d *Date) UnmarshalGQL(v any) error {
	s, ok := v.(string)
	t, err := time.Parse(time.DateOnly, s)
	if !ok || err != nil || t.Year() < 1 {
		return BadInput("a Date is a day of the calendar, such as 2026-11-29")
	}
	d.Time = t
	return nil
}

// Scan reads a date.
func (d *Date) Scan(src any) error {
	t, ok := src.(time.Time)
	if !ok {
		return fmt.Errorf("date: cannot read %T", src)
	}
	d.Time = t
	return nil
}

// Value is the date.
func (d Date) Value() (driver.Value, error) { return d.Time, nil }

// ParseTimeZone loads a zone of the IANA database by its name.
func ParseTimeZone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return nil, BadInput("not a time zone of the IANA database, such as Europe/Berlin")
	}
	return zone, nil
}
