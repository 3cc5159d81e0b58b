package txn_test

import (
	"context"
	"testing"
	"time"

	"countersign/internal/domain"
	"countersign/internal/testdb/pgproxy"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// soon is a deadline that a machine under load meets with ease, once it is connected, and that a
// test can wait for.
const soon = 600 * time.Millisecond

// hanging is the database under test behind a proxy, its connections open, and its writes due soon.
func (h *house) hanging(t *testing.T) (*pgproxy.Proxy, *txn.DB) {
	t.Helper()
	proxy, db := h.behind(t, txn.Settings{WriteTimeout: soon})
	fill(t, h.pool(db), 2)
	return proxy, db
}

// COMMIT hangs past the deadline and its fate is decided while the second run waits for the row it
// may have inserted: the answer is success either way, and there is one row.
func TestACommitThatHangsIsDecidedUnderTheSecondRun(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for name, decide := range map[string]func(*pgproxy.Hold){
		"it arrives": (*pgproxy.Hold).Release, "it is lost": (*pgproxy.Hold).Cut,
	} {
		t.Run(name, func(t *testing.T) {
			proxy, db := h.hanging(t)
			c := h.create(t, "Bakery")
			hold := proxy.Hold(pgproxy.Commit())
			done := c.start(t.Context(), db, inTransaction)
			check(t, hold.Wait(t.Context()))
			h.AwaitLockWaits(t, 1) // the second run, at the first one's row
			decide(hold)
			c.mustBeOwn(t, h, <-done, 2)
			h.settle(t)
			c.mustHaveRows(t, h, 1)
		})
	}
}

// COMMIT hangs past every deadline: OUTCOME_UNKNOWN with the key. Whatever becomes of it later is
// one effect or none, and asking again makes it one.
func TestACommitThatHangsForGoodIsUnknown(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for name, late := range map[string]struct {
		decide func(*pgproxy.Hold)
		rows   int
	}{
		"it arrives in the end": {(*pgproxy.Hold).Release, 1},
		"it never arrives":      {(*pgproxy.Hold).Cut, 0},
	} {
		for _, f := range forms {
			t.Run(name+", "+f.String(), func(t *testing.T) {
				proxy, db := h.hanging(t)
				c := h.create(t, "Bakery")
				hold := proxy.Hold(sent(f).Times(pgproxy.Always))
				c.mustBeUnknown(t, c.run(t.Context(), db, f))
				c.mustHaveTried(t, 2)
				c.mustHaveRows(t, h, 0)
				late.decide(hold)
				h.settle(t)
				c.mustHaveRows(t, h, late.rows)
				c.mustResolve(t, h, h.db(t, txn.Settings{}), late.rows == 1)
			})
		}
	}
}

// One statement hangs in the wire past the deadline. The second run overtakes it and succeeds;
// when it arrives after all, the operation's key stops it.
func TestAStatementThatArrivesLateChangesNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	proxy, db := h.hanging(t)
	c := h.create(t, "Bakery")
	hold := proxy.Hold(pgproxy.Query("InsertCustomer"))
	c.mustBeOwn(t, h, c.run(t.Context(), db, oneStatement), 2)
	hold.Release()
	h.settle(t)
	h.mustHave(t, 1)
}

// The server has committed and its answer hangs past the deadline: the second run finds the row of
// the first and answers with it, as this request's own.
func TestAnAnswerThatHangsIsFound(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for _, f := range forms {
		proxy, db := h.hanging(t)
		c := h.create(t, "Bakery")
		hold := proxy.HoldAnswer(sent(f))
		a := c.run(t.Context(), db, f)
		c.mustBeOwn(t, h, a, 2)
		if *a.out.Value.Email != "attempt@1" {
			t.Errorf("got the row of %s, want the first run's", *a.out.Value.Email)
		}
		hold.Cut()
		h.settle(t)
		c.mustHaveRows(t, h, 1)
	}
}

// A deadline before COMMIT is sent leaves nothing unknown: BUSY, and nothing applied. It may pass
// while a statement hangs, or after the last one was answered.
func TestADeadlineBeforeCommitIsBusy(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	proxy, db := h.hanging(t)
	c := h.create(t, "Bakery")
	hold := proxy.Hold(pgproxy.Query("InsertCustomer"))
	c.run(t.Context(), db, inTransaction).mustFail(t, domain.CodeBusy)
	c.mustHaveTried(t, 1)
	hold.Release()

	late := h.create(t, "Bakery")
	write := late.as(inTransaction)
	write.Apply = func(ctx context.Context, tx txn.Tx) (*sqlc.Customer, error) {
		row, err := late.apply(ctx, tx)
		<-ctx.Done()
		return row, err
	}
	var a answer
	a.out, a.err = txn.Run(t.Context(), db, write)
	a.mustFail(t, domain.CodeBusy)
	late.mustHaveTried(t, 1)
	h.settle(t)
	h.mustHave(t, 0)
}
