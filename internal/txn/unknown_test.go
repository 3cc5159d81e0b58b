package txn_test

import (
	"context"
	"errors"
	"testing"

	"countersign/internal/domain"
	"countersign/internal/testdb/pgproxy"
	"countersign/internal/txn"
)

// While the first run's COMMIT may still be on its way, what the second run decides may be decided
// before it: a refusal that a client would believe, and then the effect appears. Whatever the
// second run meets, but success and replay, is therefore OUTCOME_UNKNOWN; asking again with the
// key it carries makes exactly one effect.
func TestAfterAnUnknownOutcomeOnlyTheEffectIsAnAnswer(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.raise(t)
	second := func(err error) func(c *creation) {
		return func(c *creation) {
			c.first = func(_ context.Context, _ txn.Tx, attempt int) error {
				if attempt > 1 {
					return err
				}
				return nil
			}
		}
	}
	from2 := func(code string) func(c *creation) {
		return func(c *creation) { c.name = demand(atStatement, 2, 9, code) }
	}
	for name, fate := range map[string]struct {
		runs int
		of   func(c *creation)
	}{
		"a refusal":                {2, second(domain.Refuse(domain.CodeNotFound, nil, "no such thing"))},
		"a guard refused for good": {5, second(txn.ErrRefused)},
		"a defect":                 {2, second(errors.New("a defect"))},
		"BUSY":                     {2, from2("55P03")},
		"UNAVAILABLE":              {2, from2("53100")},
		"BAD_INPUT":                {2, from2("22021")},
		"retries used up":          {5, from2("40001")},
		"another constraint":       {2, from2("23505 invoice_series_code_key")},
		"a taken number":           {3, from2("23505 invoices_number_key")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, db := h.behind(t, txn.Settings{})
			c := h.create(t, "Bakery")
			fate.of(c)
			lost := proxy.CutBefore(pgproxy.Commit())
			c.mustBeUnknown(t, c.run(t.Context(), db, inTransaction))
			c.mustHaveTried(t, fate.runs)
			if lost.Count() != 1 {
				t.Error("nothing was lost")
			}
			c.mustResolve(t, h, db, false)
		})
	}
}

// The second run refuses although the first took effect, unknown to it: the answer is not that
// refusal, but the effect.
func TestARefusalIsNotBelievedOverALostCommit(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for _, f := range forms {
		proxy, db := h.behind(t, txn.Settings{})
		c := h.create(t, "Bakery")
		c.first = func(_ context.Context, _ txn.Tx, attempt int) error {
			if attempt == 2 {
				return domain.Refuse(domain.CodeNotFound, nil, "no such thing")
			}
			return nil
		}
		proxy.CutAfter(sent(f))
		c.mustBeOwn(t, h, c.run(t.Context(), db, f), 2)
		c.mustResolve(t, h, db, true)
	}
}

// A second loss is as unknown as the first.
func TestAnotherLossStaysUnknown(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for name, loss := range map[string]struct {
		f         form
		cut       func(*pgproxy.Proxy, pgproxy.Point) *pgproxy.Fault
		committed bool
	}{
		"two COMMITs that never arrived":    {inTransaction, (*pgproxy.Proxy).CutBefore, false},
		"two statements that never arrived": {oneStatement, (*pgproxy.Proxy).CutBefore, false},
		"the answers to two statements":     {oneStatement, (*pgproxy.Proxy).CutAfter, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy, db := h.behind(t, txn.Settings{})
			c := h.create(t, "Bakery")
			lost := loss.cut(proxy, sent(loss.f).Times(2))
			c.mustBeUnknown(t, c.run(t.Context(), db, loss.f))
			c.mustHaveTried(t, 2)
			if n := lost.Count(); n != 2 {
				t.Errorf("the connection was cut %d times, want 2", n)
			}
			c.mustResolve(t, h, db, loss.committed)
		})
	}
}

// The database goes away with the answer: no connection for the second run is no answer either.
func TestNoConnectionAfterALossStaysUnknown(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for _, f := range forms {
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			proxy, db := h.behind(t, txn.Settings{})
			c := h.create(t, "Bakery")
			hold := proxy.HoldAnswer(sent(f))
			done := c.start(t.Context(), db, f)
			check(t, hold.Wait(t.Context()))
			proxy.Refuse(true)
			hold.Cut()
			c.mustBeUnknown(t, <-done)
			proxy.Refuse(false)
			c.mustResolve(t, h, db, true)
		})
	}
}

// mustResolve asks again with the key, as OUTCOME_UNKNOWN says to, and checks for exactly one
// effect: of the request before, if it took effect, else of this one.
func (c *creation) mustResolve(t *testing.T, h *house, db *txn.DB, committed bool) {
	t.Helper()
	again := c.again(t, h)
	again.op.Fingerprint = c.op.Fingerprint
	again.name = "Bakery"
	a := again.run(t.Context(), db, inTransaction)
	if committed {
		again.mustReplay(t, a, c, 0)
	} else {
		again.mustBeOwn(t, h, a, 1)
	}
}
