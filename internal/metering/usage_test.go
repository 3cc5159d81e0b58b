package metering_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"countersign/internal/domain"
	"countersign/internal/metering"
)

func wantRecorded(t *testing.T, got metering.Recorded, accepted, duplicates int32, refused ...string) {
	t.Helper()
	var said []string
	for _, err := range got.Refused {
		said = append(said, refusal(err))
	}
	if got.Accepted != accepted || got.Duplicates != duplicates || !slices.Equal(said, refused) {
		t.Errorf("%d accepted, %d duplicates, refused %q; want %d, %d, %q", got.Accepted, got.Duplicates, said, accepted, duplicates, refused)
	}
}

// Case 29: usage at 00:00 and at 14:59:59.999, the key revoked at 15:00: both are billed; usage at
// 15:00:00.001 is refused.
func TestCase29UsageUpToTheRevocation(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	key, day := m.key(t, "1"), time.Date(2026, 6, 30, 0, 0, 0, 0, time.UTC)
	m.clock.set(day)
	m.use(t, key, 1)
	m.clock.set(day.Add(15*time.Hour - time.Millisecond))
	m.use(t, key, 2)
	m.clock.set(day.Add(15 * time.Hour))
	m.revoke(t, key)
	m.clock.add(time.Millisecond)
	wantRecorded(t, m.record(t, m.event(key, 4)), 0, 0, "KEY_REVOKED input.events.0.apiKeyId")
	m.wantBooks(t, "USAGE OPEN 3")
	m.sound(t)
}

// Case 31: a customer in Los Angeles; usage at 2026-11-01T06:30Z is October's, the hour that comes
// twice that night is November's both times, and the months sum to the total. Case 38: the first
// moment of a month is that month's only.
func TestCase31And38UsageIsOfTheCustomersMonth(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	utc := m.key(t, "1")
	m.clock.set(time.Date(2026, 11, 10, 0, 0, 0, 0, time.UTC))
	m.customer = m.customerIn(t, "America/Los_Angeles")
	key := m.key(t, "1")
	for at, n := range map[string]int64{
		"2026-11-01T06:30:00Z": 1, "2026-11-01T06:59:59.999999Z": 2,
		"2026-11-01T07:00:00Z": 10, "2026-11-01T08:30:00Z": 20, "2026-11-01T09:30:00Z": 40,
	} {
		moment, err := domain.ParseTime(at)
		check(t, err)
		m.useAt(t, key, n, moment)
		if n == 10 {
			m.useAt(t, utc, n, moment)
		}
	}
	m.useAt(t, utc, 5, time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))
	m.useAt(t, utc, 6, time.Date(2026, 10, 31, 23, 59, 59, 999999000, time.UTC))
	want := []string{"2026-10 3", "2026-11 70", "2026-10 6", "2026-11 15"}
	var got []string
	for _, id := range []domain.APIKeyID{key, utc} {
		for _, s := range m.revoke(t, id).Settlements {
			got = append(got, fmt.Sprintf("%s %d", s.Month, s.Quantity))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("settled %q, want %q", got, want)
	}
	m.sound(t)
}

// Case 37: one event delivered four times, to two servers, within a request and across, before and
// after its key is revoked, and after the time within which new usage may be told: one unit is
// billed, and each delivery after the first is a success. The same id with another body is a conflict.
func TestCase37AnEventCountsOnce(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	key, spare, other := m.key(t, "1"), m.key(t, "1"), m.another(t, 3)
	e := m.event(key, 1)
	more := e
	more.Quantity = 2
	wantRecorded(t, m.record(t, e, e), 1, 1)
	wantRecorded(t, other.record(t, e), 0, 1)
	wantRecorded(t, m.record(t, more, e), 0, 1, "EVENT_CONFLICT input.events.0.id")
	later, elsewhere := e, e
	later.OccurredAt = later.OccurredAt.Add(time.Microsecond)
	elsewhere.APIKeyID = spare
	wantRecorded(t, m.record(t, later, elsewhere), 0, 0, "EVENT_CONFLICT input.events.0.id", "EVENT_CONFLICT input.events.1.id")
	m.revoke(t, key)
	wantRecorded(t, m.record(t, e, more), 0, 1, "EVENT_CONFLICT input.events.1.id")
	m.clock.add(200 * 24 * time.Hour)
	wantRecorded(t, m.record(t, e), 0, 1)
	m.wantBooks(t, "USAGE OPEN 1")
	m.sound(t)
}

// Twins in one request share the fate of the first: none is a success if that one is refused.
func TestTwinsOfARefusedEventAreRefused(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	key, live := m.key(t, "1"), m.key(t, "1")
	m.revoke(t, key)
	e := m.event(key, 1)
	other := e
	other.APIKeyID = live
	wantRecorded(t, m.record(t, e, e, other), 0, 0, "KEY_REVOKED input.events.0.apiKeyId", "KEY_REVOKED input.events.1.apiKeyId", "EVENT_CONFLICT input.events.2.id")
	m.sound(t)
}

// Each event is judged alone: those that are refused, each at its path, do not hold up the others.
// What may be told is told within 92 days, and at most five minutes ahead.
func TestEachEventIsJudgedAlone(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	key, revoked, now := m.key(t, "1"), m.key(t, "1"), m.clock.now()
	m.revoke(t, revoked)
	stranger := m.afresh(t)
	foreign := stranger.key(t, "1")
	event := func(key domain.APIKeyID, n int64, at time.Time) metering.UsageEventInput {
		e := m.event(key, n)
		e.OccurredAt = at
		return e
	}
	wantRecorded(t, m.record(t,
		event(key, 1, now),
		event(foreign, 1, now),
		event(key, 0, now),
		event(key, -1, now),
		event(key, 1, now.Add(5*time.Minute)),
		event(key, 1, now.Add(5*time.Minute+time.Microsecond)),
		event(key, 1, now.Add(-92*24*time.Hour)),
		event(key, 1, now.Add(-92*24*time.Hour-time.Microsecond)),
		event(revoked, 1, now),
		event(domain.NewID[domain.APIKeyID](), 1, now),
	), 3, 0,
		"NOT_FOUND input.events.1.apiKeyId", "INVALID_QUANTITY input.events.2.quantity", "INVALID_QUANTITY input.events.3.quantity",
		"OUT_OF_RANGE input.events.5.occurredAt", "OUT_OF_RANGE input.events.7.occurredAt",
		"KEY_REVOKED input.events.8.apiKeyId", "NOT_FOUND input.events.9.apiKeyId")
	_, err := m.RecordUsage(t.Context(), m.caller, metering.RecordUsageInput{})
	wantRefusal(t, err, "BAD_INPUT input.events")
	_, err = m.RecordUsage(t.Context(), m.caller, metering.RecordUsageInput{Events: make([]metering.UsageEventInput, 1001)})
	wantRefusal(t, err, "BAD_INPUT input.events")
	_, err = m.RecordUsage(t.Context(), m.caller, metering.RecordUsageInput{Events: []metering.UsageEventInput{{APIKeyID: key, Quantity: 1, OccurredAt: now}}})
	wantRefusal(t, err, "BAD_INPUT input.events.0.id")
	m.sound(t)
}

// A request that is asked again by its key is answered as before, with what was refused.
func TestARequestOfUsageIsReplayed(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	key, request := m.key(t, "1"), "request"
	e := m.event(key, 1)
	in := metering.RecordUsageInput{Events: []metering.UsageEventInput{e, e, m.event(key, 0)}, IdempotencyKey: &request}
	for _, replayed := range []bool{false, true} {
		out, err := m.RecordUsage(t.Context(), m.caller, in)
		check(t, err)
		if out.Replayed != replayed {
			t.Errorf("replayed: %t", out.Replayed)
		}
		wantRecorded(t, out.Value, 1, 1, "INVALID_QUANTITY input.events.2.quantity")
	}
	in.Events = in.Events[:1]
	_, err := m.RecordUsage(t.Context(), m.caller, in)
	wantRefusal(t, err, "IDEMPOTENCY_KEY_REUSED input.idempotencyKey")
}

// Two writers deliver the same thousand events of many keys and months, in opposite orders, at the
// same time, again and again: nobody is stopped, and each event counts once.
func TestTwoWritersInOppositeOrder(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	var keys []domain.APIKeyID
	for range 8 {
		keys = append(keys, m.key(t, "1"))
	}
	var events []metering.UsageEventInput
	for i := range 1000 {
		e := m.event(keys[i%8], 1)
		e.OccurredAt = e.OccurredAt.AddDate(0, -(i % 3), 0)
		events = append(events, e)
	}
	reversed := slices.Clone(events)
	slices.Reverse(reversed)
	var got [4]metering.Recorded
	together(4, func(i int) {
		got[i] = m.another(t, 2).record(t, [][]metering.UsageEventInput{events, reversed}[i%2]...)
	})
	var accepted, duplicates int32
	for _, r := range got {
		accepted, duplicates = accepted+r.Accepted, duplicates+r.Duplicates
	}
	if accepted != 1000 || duplicates != 3000 {
		t.Errorf("%d accepted, %d duplicates", accepted, duplicates)
	}
	for _, key := range keys {
		m.revoke(t, key)
	}
	m.sound(t)
}

// Proves the order of InsertUsage: two batches that insert the same ids in opposite orders deadlock.
func TestUnsortedBatchesDeadlock(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	a, b := m.event(m.used(t, "1", 1), 1), m.event(m.key(t, "1"), 1) // the month is pinned already
	gate := m.Gate(t, "commit")
	done := make(chan metering.Recorded, 2)
	deliver := func(w *meter, events ...metering.UsageEventInput) {
		var r metering.Recorded
		defer func() { done <- r }()
		r = w.record(t, events...)
	}
	go deliver(m, a)
	gate.Await(t, 1) // it holds a's id
	go deliver(m.another(t, 2), b, a)
	m.AwaitLockWaits(t, 1) // in the order of the ids: it waits for a, and does not hold b yet
	if n := m.count(t, "pg_locks l JOIN pg_stat_activity a USING (pid) WHERE NOT l.granted AND a.datname = current_database()"); n != 1 {
		t.Errorf("%d locks are waited for", n)
	}
	wantRecorded(t, m.another(t, 2).record(t, b), 1, 0) // b is free
	gate.Open()
	if one, two := <-done, <-done; one.Accepted+two.Accepted != 1 || one.Duplicates+two.Duplicates != 2 {
		t.Errorf("got %+v and %+v", one, two)
	}
}

// A month's usage past 64 bits is refused before anything is written, and is not lost: it stays
// unsettled. It holds up nobody else's.
func TestUsagePastSixtyFourBits(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	key, well := m.key(t, "0"), m.used(t, "1", 7)
	m.use(t, key, 1<<62)
	m.use(t, key, 1<<62)
	_, err := m.Revoke(t.Context(), m.caller, metering.RevokeAPIKeyInput{APIKeyID: key})
	wantRefusal(t, err, "AMOUNT_OVERFLOW")
	m.kill(t, &job{Key: well, Query: "LockAPIKey", Nth: 1})
	if r := m.settle(t); r != (metering.Settled{Revocations: 1, Left: 1}) {
		t.Errorf("the job did %+v", r)
	}
	if n := m.count(t, "settlements WHERE api_key_id = $1", key); n != 0 {
		t.Errorf("%d settlements of what cannot be summed", n)
	}
	m.wantBooks(t, "USAGE OPEN 7")
	m.conserved(t)
}
