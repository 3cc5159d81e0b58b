package metering_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"countersign/internal/domain"
	"countersign/internal/metering"
	"countersign/internal/testdb"
	"countersign/sqlc"
)

// Usage that is in flight when its key's revocation starts is part of the settlement: the revocation
// waits for it. Usage that comes after the announcement is refused, on every server, while the
// revocation still waits. Case 39's first part.
func TestUsageInFlightIsInTheFold(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	key, other := m.used(t, "1", 10), m.another(t, 5)
	gate := m.Gate(t, "commit")
	recorded := make(chan metering.Recorded, 1)
	go func() {
		defer close(recorded)
		recorded <- m.record(t, m.event(key, 7))
	}()
	gate.Await(t, 1)
	revoked := make(chan metering.Revoked, 1)
	go func() {
		defer close(revoked)
		revoked <- other.revoke(t, key)
	}()
	m.AwaitLockWaits(t, 1) // announced, and waiting for the key
	wantRecorded(t, m.another(t, 2).record(t, m.event(key, 5)), 0, 0, "KEY_REVOKED input.events.0.apiKeyId")
	gate.Open()
	wantRecorded(t, <-recorded, 1, 0)
	if s := (<-revoked).Settlement; s == nil || s.Quantity != 17 {
		t.Errorf("settled %+v, want the 7 units in flight too", s)
	}
	m.wantBooks(t, "USAGE OPEN 17")
	m.sound(t)
}

// Usage whose look at its keys began before the announcement, and comes to the key only after the
// revocation: what is active is checked again on the row as it is now, so it is refused. Proves the
// status in ShareActiveKeys: its snapshot knows nothing of the announcement.
func TestUsageThatBeganBeforeTheAnnouncementIsRefused(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	first, key, other := m.key(t, "1"), m.used(t, "1", 10), m.another(t, 5)
	holder, err := m.Owner(t).Begin(t.Context())
	check(t, err)
	_, err = holder.Exec(t.Context(), "SELECT FROM api_keys WHERE id = $1 FOR UPDATE", first)
	check(t, err)
	recorded := make(chan metering.Recorded, 1)
	go func() {
		defer close(recorded)
		recorded <- other.record(t, m.event(first, 1), m.event(key, 7)) // keys are held in the order of their ids
	}()
	m.AwaitLockWaits(t, 1)
	m.revoke(t, key)
	check(t, holder.Rollback(t.Context()))
	wantRecorded(t, <-recorded, 1, 0, "KEY_REVOKED input.events.1.apiKeyId")
	m.wantBooks(t, "USAGE OPEN 10")
	m.revoke(t, first)
	m.sound(t)
}

// A stream of usage on the key, from several servers, does not hold its revocation up; each event is
// billed or refused, and exactly once.
func TestAStreamOfUsageDoesNotHoldTheRevocationUp(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	key := m.used(t, "1", 1)
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	var writers, flowing sync.WaitGroup
	var mu sync.Mutex
	accepted := int64(1)
	for range 6 {
		w := m.another(t, 2)
		flowing.Add(1)
		writers.Go(func() {
			var once sync.Once
			for n := 0; ctx.Err() == nil; n++ {
				r := w.record(t, w.event(key, 1))
				mu.Lock()
				accepted += int64(r.Accepted)
				mu.Unlock()
				if n == 3 {
					once.Do(flowing.Done)
				}
				if r.Accepted == 0 {
					once.Do(flowing.Done)
					return // revoked, for good
				}
			}
		})
	}
	flowing.Wait()
	out := m.revoke(t, key) // its lock_timeout would end a long wait with an error
	writers.Wait()          // each writer comes to be refused
	if ctx.Err() != nil {
		t.Error("the stream was not ended by the revocation")
	}
	if out.Settlement.Quantity != accepted {
		t.Errorf("%d units settled, %d accepted", out.Settlement.Quantity, accepted)
	}
	m.sound(t)
}

// hold holds a key active as ingestion does.
func hold(t *testing.T, m *meter, q *sqlc.Queries, key domain.APIKeyID) {
	t.Helper()
	held, err := q.ShareActiveKeys(t.Context(), sqlc.ShareActiveKeysParams{TenantID: m.caller.TenantID, Ids: []domain.APIKeyID{key}})
	check(t, err)
	if len(held) != 1 {
		t.Fatal("the key is not active")
	}
}

// ingest records n units in a transaction that holds the key.
func ingest(t *testing.T, m *meter, q *sqlc.Queries, key domain.APIKeyID, n int64) {
	t.Helper()
	e := m.event(key, n)
	_, err := q.InsertUsage(t.Context(), sqlc.InsertUsageParams{
		TenantID: m.caller.TenantID, RecordedAt: e.OccurredAt, EventIds: []string{e.ID}, APIKeyIds: []domain.UUID{domain.UUID(key)},
		CustomerIds: []domain.UUID{domain.UUID(m.customer)}, Months: []domain.Date{june.Date}, Quantities: []int64{n}, OccurredAts: []time.Time{e.OccurredAt},
	})
	check(t, err)
}

// Proves FOR SHARE in ShareActiveKeys. A revocation comes between ingestion's look at the key and its
// insert: with the lock it waits, and settles the units; without, it settles without them, and they
// come to light on a key that is settled for good.
func TestWithoutTheSharedLockUsageIsLost(t *testing.T) {
	t.Parallel()
	one := newMeter(t)
	for _, guarded := range []bool{true, false} {
		t.Run(map[bool]string{true: "with", false: "without"}[guarded], func(t *testing.T) {
			m := one.afresh(t)
			key := m.used(t, "1", 10)
			tx, err := m.Owner(t).Begin(t.Context())
			check(t, err)
			want, done := int64(17), make(chan struct{})
			revoke := func() {
				defer close(done)
				m.revoke(t, key)
			}
			if guarded {
				hold(t, m, sqlc.New(tx), key)
				go revoke()
				m.AwaitLockWaits(t, 1)
			} else {
				hold(t, m, testdb.Without(t, tx, "FOR SHARE OF k"), key)
				want = 10
				revoke()
			}
			ingest(t, m, sqlc.New(tx), key, 7)
			check(t, tx.Commit(t.Context()))
			<-done
			if n := m.count(t, "settlements WHERE api_key_id = $1 AND quantity = $2", key, want); n != 1 {
				t.Errorf("there is no settlement of %d units", want)
			}
			if lost := m.count(t, "usage_events WHERE api_key_id = $1 AND settlement_id IS NULL", key); lost != map[bool]int{true: 0, false: 1}[guarded] {
				t.Errorf("%d events are left behind", lost)
			}
		})
	}
}

// Proves FOR UPDATE in LockAPIKey, and that the sum stands in a later statement. A revocation that
// does not lock, and one that locks and sums in one statement, whose snapshot is older than its wait,
// both sum without the usage that they raced.
func TestTheLockAndTheSumAreTwoStatements(t *testing.T) {
	t.Parallel()
	one := newMeter(t)
	sum := func(m *meter, key domain.APIKeyID, q *sqlc.Queries) int64 {
		rows, err := q.SumUnsettledUsage(t.Context(), sqlc.SumUnsettledUsageParams{TenantID: m.caller.TenantID, APIKeyID: key})
		check(t, err)
		n, err := rows[0].Quantity.Int64()
		check(t, err)
		return n
	}
	for name, c := range map[string]struct {
		waits bool
		read  func(t *testing.T, m *meter, key domain.APIKeyID, db sqlc.DBTX) int64
		want  int64
	}{
		"the lock, then the sum": {true, func(t *testing.T, m *meter, key domain.APIKeyID, db sqlc.DBTX) int64 {
			_, err := sqlc.New(db).LockAPIKey(t.Context(), sqlc.LockAPIKeyParams{TenantID: m.caller.TenantID, ID: key})
			check(t, err)
			return sum(m, key, sqlc.New(db))
		}, 17},
		"no lock": {false, func(t *testing.T, m *meter, key domain.APIKeyID, db sqlc.DBTX) int64 {
			_, err := testdb.Without(t, db, "FOR UPDATE").LockAPIKey(t.Context(), sqlc.LockAPIKeyParams{TenantID: m.caller.TenantID, ID: key})
			check(t, err)
			return sum(m, key, sqlc.New(db))
		}, 10},
		"lock and sum in one": {true, func(t *testing.T, m *meter, key domain.APIKeyID, db sqlc.DBTX) int64 {
			q := instead(t, db, "FROM usage_events\nWHERE", "FROM (SELECT tenant_id, id FROM api_keys WHERE tenant_id = $1 AND id = $2 FOR UPDATE) k JOIN usage_events USING (tenant_id)\nWHERE")
			return sum(m, key, q)
		}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			m := one.afresh(t)
			key := m.used(t, "1", 10)
			flight, err := m.Owner(t).Begin(t.Context())
			check(t, err)
			hold(t, m, sqlc.New(flight), key)
			ingest(t, m, sqlc.New(flight), key, 7)
			reader, err := m.Owner(t).Begin(t.Context())
			check(t, err)
			got := make(chan int64, 1)
			go func() {
				defer close(got)
				got <- c.read(t, m, key, reader)
			}()
			if c.waits {
				m.AwaitLockWaits(t, 1)
				check(t, flight.Commit(t.Context()))
			}
			if n := <-got; n != c.want {
				t.Errorf("%d units summed, want %d", n, c.want)
			}
			check(t, reader.Rollback(t.Context()))
			_ = flight.Rollback(t.Context())
		})
	}
}

// Case 39: a revoked key is refused at once on every replica: nothing remembers it as active.
func TestCase39ARevokedKeyIsRefusedEverywhere(t *testing.T) {
	t.Parallel()
	m := newMeter(t)
	key := m.key(t, "1")
	servers := []*meter{m, m.another(t, 2), m.another(t, 2), m.another(t, 2)}
	for _, s := range servers {
		s.use(t, key, 1)
	}
	servers[1].revoke(t, key)
	for _, s := range servers {
		wantRecorded(t, s.record(t, s.event(key, 1)), 0, 0, "KEY_REVOKED input.events.0.apiKeyId")
	}
	m.wantBooks(t, "USAGE OPEN 4")
	m.sound(t)
}
