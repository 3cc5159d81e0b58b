package domain

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Ten thousand updates of one row, by a clock that jumps about at random, stands still, or was set
// back an hour: the version a client holds is never handed out again, and each is whole
// microseconds, so that no encoding can round it.
func TestVersionsRiseStrictly(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 29, 12, 0, 0, 123_456_789, time.UTC)
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a clock, not a secret
	for name, clock := range map[string]func(now time.Time, i int) time.Time{
		"random":           func(now time.Time, _ int) time.Time { return now.Add(time.Duration(random.Int64N(2001) - 1000)) },
		"random, by hours": func(time.Time, int) time.Time { return start.Add(time.Duration(random.Int64N(int64(24 * time.Hour)))) },
		"back an hour": func(now time.Time, i int) time.Time {
			return now.Add(time.Millisecond - time.Hour*time.Duration(i%100/99))
		},
		"standing still": func(now time.Time, _ int) time.Time { return now },
	} {
		t.Run(name, func(t *testing.T) {
			now, version := start, VersionAt(start)
			for i := range 10_000 {
				now = clock(now, i)
				next := version.Next(now)
				switch {
				case !next.After(version.Time):
					t.Fatalf("seed %d, update %d at %v: %v after %v", seed, i, now, next, version)
				case next.Nanosecond()%1000 != 0:
					t.Fatalf("seed %d, update %d: %v is finer than a microsecond", seed, i, next)
				case now.Sub(version.Time) > time.Microsecond && !next.Equal(now.Truncate(time.Microsecond)):
					t.Fatalf("seed %d, update %d: got %v at %v: a clock that goes on is the version", seed, i, next, now)
				}
				version = next
			}
		})
	}
}

// A version that a client sends back as it got it is the one that was stored.
func TestAVersionKeepsItsPrintedForm(t *testing.T) {
	t.Parallel()
	version := VersionAt(time.Date(2026, 11, 29, 12, 0, 0, 309_921_999, time.FixedZone("", 3600)))
	printed := FormatTime(version.Time)
	if printed != "2026-11-29T11:00:00.309921Z" {
		t.Errorf("printed as %s", printed)
	}
	var back Version
	if err := back.UnmarshalGQL(printed); err != nil || !back.Equal(version.Time) {
		t.Errorf("came back as %v: %v", back, err)
	}
	// Cut to milliseconds, as some clients do to every time, it is another version.
	if err := back.UnmarshalGQL("2026-11-29T11:00:00.309Z"); err != nil || back.Equal(version.Time) {
		t.Errorf("cut to milliseconds it passes for %v: %v", back, err)
	}
}
