package domain

import (
	"testing"
	"time"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := ParseTimeZone(name)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return z
}

// A time has one spelling on its way out, and comes back from any spelling of RFC 3339 that holds
// no more than the database keeps. What cannot be printed again is refused.
func TestTimesOfTheWire(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"2026-11-29T12:00:00Z":        "2026-11-29T12:00:00.000000Z",
		"2026-11-29T12:00:00.5Z":      "2026-11-29T12:00:00.500000Z",
		"2026-11-29T12:00:00.309921Z": "2026-11-29T12:00:00.309921Z",
		"2026-11-29T12:00:00+05:45":   "2026-11-29T06:15:00.000000Z",
		"2026-11-29T12:00:00-00:00":   "2026-11-29T12:00:00.000000Z",
		"0001-01-01T00:00:00Z":        "0001-01-01T00:00:00.000000Z",
		"9999-12-31T23:59:59.999999Z": "9999-12-31T23:59:59.999999Z",
	} {
		got, err := ParseTime(in)
		if err != nil || FormatTime(got) != want || got.Location() != time.UTC {
			t.Errorf("%s is read as %s (%v), want %s", in, FormatTime(got), err, want)
		}
	}
	for _, in := range []any{
		"2026-11-29T12:00:00.1234567Z", "2026-11-29T12:00:00", "2026-11-29", "2026-11-29 12:00:00Z", "2026-11-29t12:00:00z",
		"2026-02-29T12:00:00Z", "2026-11-29T24:00:00Z", "2026-11-29T12:00:60Z", "2026-11-29T12:00:00,5Z", " 2026-11-29T12:00:00Z",
		"2026-11-29T12:00:00+99:00", "0000-12-31T12:00:00Z", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00", "", nil, 1764417600,
	} {
		if got, err := ParseTime(in); code(err) != CodeBadInput {
			t.Errorf("%v is read as %v (%v), want BAD_INPUT", in, got, err)
		}
	}
}

// A date is a day of the calendar, in one spelling.
func TestDatesOfTheWire(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"2026-11-29", "2028-02-29", "0001-01-01", "9999-12-31"} {
		var d Date
		if err := d.UnmarshalGQL(in); err != nil || d.String() != in || wire(d) != `"`+in+`"` {
			t.Errorf("%s is read as %s, printed as %s (%v)", in, d, wire(d), err)
		}
	}
	for _, in := range []any{"2026-02-29", "2026-13-01", "2026-1-1", "26-01-01", "0000-01-01", "2026-11-29T00:00:00Z", "20261129", "", nil, 20261129} {
		var d Date
		if err := d.UnmarshalGQL(in); code(err) != CodeBadInput {
			t.Errorf("%v is read as %s (%v), want BAD_INPUT", in, d, err)
		}
	}
}

// The same moment is another day elsewhere: an invoice is issued on the day of its series' zone.
func TestDateOf(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 12, 31, 23, 59, 59, 900_000_000, time.UTC)
	for name, want := range map[string]string{
		"UTC": "2026-12-31", "Europe/Berlin": "2027-01-01", "America/Los_Angeles": "2026-12-31",
		"Pacific/Kiritimati": "2027-01-01", "Asia/Kolkata": "2027-01-01",
	} {
		if got := DateOf(at, zone(t, name)).String(); got != want {
			t.Errorf("%v in %s is %s, want %s", at, name, got, want)
		}
	}
}

// A day ends when the next one begins for the first time: after 23 hours, 24 or 25, and where the
// clocks change at midnight, when the first clock of the zone shows another day. A later end would
// print yesterday's date on invoices, an earlier one would move the counter with every number.
func TestDayEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ zone, day, ends string }{
		{"UTC", "2026-12-31", "2027-01-01T00:00:00Z"},
		{"Asia/Kolkata", "2026-11-29", "2026-11-29T18:30:00Z"},
		{"Europe/Berlin", "2026-03-29", "2026-03-29T22:00:00Z"},    // 23 hours
		{"Europe/Berlin", "2026-10-25", "2026-10-25T23:00:00Z"},    // 25 hours
		{"Atlantic/Azores", "2026-03-28", "2026-03-29T01:00:00Z"},  // midnight is skipped
		{"America/Havana", "2026-03-07", "2026-03-08T05:00:00Z"},   // likewise
		{"America/Havana", "2026-10-31", "2026-11-01T04:00:00Z"},   // midnight comes twice
		{"Asia/Amman", "2021-10-28", "2021-10-28T21:00:00Z"},       // likewise, in the east
		{"America/St_Johns", "2010-11-06", "2010-11-07T02:30:00Z"}, // the clocks change a minute after midnight
		{"Pacific/Apia", "2011-12-29", "2011-12-30T10:00:00Z"},     // a day is skipped
	} {
		var d Date
		if err := d.UnmarshalGQL(c.day); err != nil {
			t.Fatal(err)
		}
		if got := d.End(zone(t, c.zone)).UTC().Format(time.RFC3339Nano); got != c.ends {
			t.Errorf("%s ends in %s at %s, want %s", c.day, c.zone, got, c.ends)
		}
	}
	// Every day of thirty years, in zones with every kind of change: the moment before is not past
	// the day, the moment itself is, and no other moment before it was.
	for _, name := range []string{
		"Europe/Berlin", "America/New_York", "America/Santiago", "America/Havana", "America/St_Johns", "America/Asuncion", "Atlantic/Azores",
		"Asia/Beirut", "Asia/Amman", "Asia/Gaza", "Africa/Cairo", "Africa/Casablanca", "Australia/Lord_Howe", "Antarctica/Casey", "Pacific/Apia",
	} {
		z := zone(t, name)
		for d := NewDate(2000, 1, 1); d.Year() < 2030; d = NewDate(d.Year(), d.Month(), d.Day()+1) {
			end := d.End(z)
			if !DateOf(end, z).After(d.Time) {
				t.Errorf("%s ends in %s at %s, which is the same day", d, name, end)
			}
			for _, before := range []time.Duration{1, time.Minute, 30 * time.Minute, 59 * time.Minute, 119 * time.Minute} {
				if DateOf(end.Add(-before), z).After(d.Time) {
					t.Errorf("%s ends in %s at %s, which is late by at least %s", d, name, end, before)
				}
			}
		}
	}
}

// A zone is one of the IANA database, by its name; what depends on the server's own settings is
// refused, since replicas would number on different days.
func TestTimeZones(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Asia/Kathmandu"} {
		if z, err := ParseTimeZone(name); err != nil || z.String() != name {
			t.Errorf("%s: %v, %v", name, z, err)
		}
	}
	for _, name := range []string{"", "Local", "Europe/Atlantis", "+01:00", "../etc/passwd", "/etc/localtime", "Europe/Berlin\x00"} {
		if z, err := ParseTimeZone(name); code(err) != CodeBadInput {
			t.Errorf("%q is the zone %v (%v), want BAD_INPUT", name, z, err)
		}
	}
}
