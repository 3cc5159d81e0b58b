package main

import (
	"context"
	"os"
	"strings"
	"testing"

	"countersign/internal/testdb"
	"countersign/internal/testdb/pgproxy"
)

// moment is where a server is when it is killed while it places an order.
type moment struct {
	// reach holds the server there, once the order is asked for.
	reach func(t *testing.T, s *shop, place func()) *pgproxy.Hold
	// left is what the database holds then, besides what is in the wire.
	left tally
	// arrives says that what is in the wire reaches the database after the server is dead.
	arrives bool
}

// standing is a server that stands before a query.
func standing(query string) func(*testing.T, *shop, func()) *pgproxy.Hold {
	return func(t *testing.T, s *shop, place func()) *pgproxy.Hold {
		t.Helper()
		held := s.proxy.Hold(pgproxy.Query(query))
		place()
		if err := held.Wait(soon(t)); err != nil {
			t.Fatal(err)
		}
		return held
	}
}

// unsent is a server whose COMMIT of the transaction that ends with a query is in the wire. Its jobs' COMMITs
// are held as well, so it stands there once as many are held as transactions are open, and that one is one of them.
func unsent(query string) func(*testing.T, *shop, func()) *pgproxy.Hold {
	return func(t *testing.T, s *shop, ask func()) *pgproxy.Hold {
		t.Helper()
		held := s.proxy.Hold(pgproxy.Commit().Times(pgproxy.Always))
		ask()
		testdb.Eventually(t, func() bool {
			commits, open, there := held.Count(), 0, false
			err := s.conn.QueryRow(context.Background(), `SELECT count(*), coalesce(bool_or(starts_with(query, '-- name: ' || $1 || ' ')), false)
				FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'`, query).Scan(&open, &there)
			return err == nil && there && commits == open
		})
		return held
	}
}

// unheard is a server that is not told that its COMMIT has happened.
func unheard(happened func(t *testing.T, s *shop) bool) func(*testing.T, *shop, func()) *pgproxy.Hold {
	return func(t *testing.T, s *shop, ask func()) *pgproxy.Hold {
		t.Helper()
		held := s.proxy.HoldAnswer(pgproxy.Commit().Times(pgproxy.Always))
		ask()
		testdb.Eventually(t, func() bool { return happened(t, s) })
		return held
	}
}

// ordered says that the order is there.
func ordered(t *testing.T, s *shop) bool { return s.tally(t, "killed").Orders == 1 }

// recorded is a server that is not told that its COMMIT of the payment has happened.
func recorded(t *testing.T, s *shop, place func()) *pgproxy.Hold {
	t.Helper()
	before := standing("LockOrder")(t, s, place)
	held := s.proxy.HoldAnswer(pgproxy.Commit().Times(pgproxy.Always))
	before.Release()
	testdb.Eventually(t, func() bool { return s.tally(t, "killed").Paid == 1 })
	return held
}

// moments are those of an order that the provider charges at once.
var moments = map[string]moment{
	"before the order's COMMIT arrives":             {reach: unsent("InsertOrder")},
	"before the order's COMMIT, which arrives late": {reach: unsent("InsertOrder"), arrives: true},
	"after the order's COMMIT, before its answer":   {reach: unheard(ordered), left: tally{Orders: 1, Pending: 1}},
	"after the order, before the provider's call":   {reach: standing("EverySimulatedCharge"), left: tally{Orders: 1, Pending: 1}},
	"after the charge, before the record":           {reach: standing("LockOrder"), left: tally{Orders: 1, Pending: 1, Charged: 1, Calls: 1}},
	"after the record, before the answer":           {reach: recorded, left: tally{Orders: 1, Paid: 1, Charged: 1, Calls: 1, PaidSteps: 1}},
}

// A server is killed with -9 at each moment of an order's life. Whoever asks the next server under
// the same key has one order, which is charged once and, once the reconciler has been, paid.
func TestKilledWhilePlacing(t *testing.T) {
	t.Parallel()
	for name, at := range moments {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shop := newShop(t)
			id := killed(t, shop, at)
			next := serve(t, t.TempDir(), shop.environ()...)
			again := next.must(t, "killed", "sim_ok")
			if left := at.left.Orders > 0; again.Replayed != (left || at.arrives) || left && again.Order.ID != id {
				t.Errorf("asked again: %+v; %q was left", again, id)
			}
			shop.command(t, "reconcile")
			shop.want(t, "killed", tally{Orders: 1, Paid: 1, Charged: 1, Calls: 1, PaidSteps: 1})
			if last := next.must(t, "killed", "sim_ok"); last.Order.ID != again.Order.ID || last.Order.Status != "PAID" || !last.Replayed {
				t.Errorf("at last: %+v, before %+v", last, again)
			}
			shop.healthy(t)
		})
	}
}

// killed kills a server at a moment of placing an order, and returns the id of what is left.
func killed(t *testing.T, shop *shop, at moment) string {
	t.Helper()
	victim := serve(t, t.TempDir(), shop.environ()...)
	answer := make(chan error, 1)
	held := at.reach(t, shop, func() {
		go func() {
			a, err := victim.place(context.Background(), "killed", "sim_ok")
			if err == nil {
				t.Errorf("the killed server answers %+v", a)
			}
			answer <- err
		}()
	})
	shop.want(t, "killed", at.left)
	victim.stop(t, os.Kill)
	<-answer
	if at.arrives {
		held.Release()
		testdb.Eventually(t, func() bool { return ordered(t, shop) })
	} else {
		held.Cut()
	}
	return strings.Join(shop.ids(t, "killed"), " and ")
}

// A server is killed after the charge, and nobody asks again, neither the buyer nor an operator: the
// next server's own job finds the payment.
func TestKilledAndReconciledByTheNextServer(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	killed(t, shop, moments["after the charge, before the record"])
	shop.Exec(t, "DELETE FROM ops.river_leader") // the dead server's lease, which ends after 15 seconds
	serve(t, t.TempDir(), shop.environ("COUNTERSIGN_RECONCILE_INTERVAL=1s")...)
	testdb.Eventually(t, func() bool { return shop.tally(t, "killed").Paid == 1 })
	shop.want(t, "killed", tally{Orders: 1, Paid: 1, Charged: 1, Calls: 1, PaidSteps: 1})
	shop.healthy(t)
}

// The buyer's request comes again, to another server, while the dead one's COMMIT is still in the
// wire: it waits for the order's fate, and is answered with the order that the first request placed.
func TestAskedAgainWhileTheCommitIsInTheWire(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	next := serve(t, t.TempDir(), "DATABASE_URL="+shop.URL, "COUNTERSIGN_RECONCILE_INTERVAL=1h")
	victim := serve(t, t.TempDir(), shop.environ()...)
	held := unsent("InsertOrder")(t, shop, func() { go func() { _, _ = victim.place(context.Background(), "killed", "sim_ok") }() })
	victim.stop(t, os.Kill)
	again := make(chan answered, 1)
	go func() {
		a, err := next.place(context.Background(), "killed", "sim_ok")
		if err != nil {
			t.Error(err)
		}
		again <- a
	}()
	shop.AwaitLockWaits(t, 1)
	held.Release()
	a := <-again
	if ids := shop.ids(t, "killed"); len(ids) != 1 || a.Order.ID != ids[0] || !a.Replayed {
		t.Errorf("asked again: %+v, placed %v", a, ids)
	}
	shop.command(t, "reconcile")
	shop.want(t, "killed", tally{Orders: 1, Paid: 1, Charged: 1, Calls: 1, PaidSteps: 1})
	shop.healthy(t)
}
