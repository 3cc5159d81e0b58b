package main

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"countersign/internal/testdb"
)

// Case 44: migrations change the tables under a server at work. Its prepared statements no longer fit, the
// database says 0A000 to each, and no client hears of it: what failed runs once more.
func TestCase44MigrationsUnderLoad(t *testing.T) {
	t.Parallel()
	d := testdb.New(t)
	s := serve(t, t.TempDir(), "DATABASE_URL="+d.URL, "COUNTERSIGN_LOG_LEVEL=DEBUG", "COUNTERSIGN_RECONCILE_INTERVAL=1h")
	const workers = 6
	var rounds [workers]atomic.Int64
	var stop atomic.Bool
	var done sync.WaitGroup
	for w := range workers {
		done.Go(func() {
			for i := 0; !stop.Load() && !t.Failed(); i++ {
				everything(t, s, fmt.Sprintf("%d-%d", w, i))
				rounds[w].Add(1)
			}
		})
	}
	// Each worker has met what has changed before the next change comes: a request is tried again once.
	round := func() {
		t.Helper()
		var before [workers]int64
		for w := range workers {
			before[w] = rounds[w].Load()
		}
		testdb.Eventually(t, func() bool {
			for w := range workers {
				if rounds[w].Load() < before[w]+2 && !t.Failed() {
					return false
				}
			}
			return true
		})
	}
	round()
	for _, table := range []string{"invoices", "customers", "orders", "products", "settlements", "series_counters", "api_keys"} {
		d.Exec(t, "ALTER TABLE "+table+" ADD COLUMN added text NOT NULL DEFAULT ''")
		round()
	}
	// A column that is only added changes no statement, since each names its columns; another type does.
	for _, column := range []string{"customers ALTER time_zone", "orders ALTER idempotency_key", "invoices ALTER created_by", "api_keys ALTER hint"} {
		d.Exec(t, "ALTER TABLE "+column+" TYPE varchar(300)")
		round()
	}
	stop.Store(true)
	done.Wait()
	s.stop(t, syscall.SIGTERM)
	if s.err != nil {
		t.Errorf("the server ended with %v", s.err)
	}
	if !strings.Contains(s.log.String(), "0A000") {
		t.Error("no statement was stale: nothing is proven")
	}
}
