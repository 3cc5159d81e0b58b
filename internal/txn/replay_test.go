package txn_test

import (
	"context"
	"strings"
	"testing"

	"countersign/internal/domain"
	"countersign/internal/txn"
)

// Asked again with the key it chose, a client gets the row of its first request, marked so, and
// nothing is run: a replay is decided before Apply, and so before anything that Apply would check.
func TestAKnownKeyIsAnsweredBeforeAnythingRuns(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	db := h.db(t, txn.Settings{})
	for _, f := range forms {
		first := h.createUnder(t, "key of a "+f.String(), "Bakery")
		first.mustBeOwn(t, h, first.run(t.Context(), db, f), 1)
		again := first.again(t, h)
		again.mustReplay(t, again.run(t.Context(), db, f), first, 0)
	}
	h.mustHave(t, 2)
}

// A key that the server made works like a client's from the next request on.
func TestAMadeKeyAsksAgain(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	db := h.db(t, txn.Settings{})
	first := h.create(t, "Bakery")
	a := first.run(t.Context(), db, oneStatement)
	first.mustBeOwn(t, h, a, 1)
	if !a.out.KeyMade || a.out.Key == "" {
		t.Errorf("got the key %q, made: %v", a.out.Key, a.out.KeyMade)
	}
	again := h.createUnder(t, a.out.Key, "Bakery")
	again.mustReplay(t, again.run(t.Context(), db, oneStatement), first, 0)
}

// Two requests of one key at once. The second's statement began before the first's COMMIT, so its
// own snapshot never shows the winner's row, which is read in a statement after it.
func TestTheLoserOfARaceAnswersWithTheWinnersRow(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	db := h.db(t, txn.Settings{})
	for _, f := range forms {
		first := h.createUnder(t, "key of a "+f.String(), "Bakery")
		again := first.again(t, h)
		won, lost := h.race(t, db, db, first, again, f)
		first.mustBeOwn(t, h, won, 1)
		again.mustReplay(t, lost, first, 1)
	}
	h.mustHave(t, 2)
}

// One key with two inputs: whoever comes second is refused, whether the first is long done or
// commits just now, and learns nothing of what the key was used for.
func TestAKeyWithAnotherInputIsRefused(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	db := h.db(t, txn.Settings{})
	first, other := h.createUnder(t, "one key", "Bakery"), h.createUnder(t, "one key", "Florist")
	won, lost := h.race(t, db, db, first, other, oneStatement)
	first.mustBeOwn(t, h, won, 1)
	other.mustBeReused(t, lost, 1)

	late := h.createUnder(t, "one key", "Florist")
	late.mustBeReused(t, late.run(t.Context(), db, inTransaction), 0)
	h.mustHave(t, 1)
}

// Two requests of one key at once: the second has looked for the key before the first committed, and is then
// refused for what the first has done, as whoever credits an invoice is that has been credited meanwhile. It is
// answered with the first one's row; another input is told that the key is used, and another key the refusal.
func TestARefusalThatATwinHasCausedIsAReplay(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	db := h.db(t, txn.Settings{})
	for _, f := range forms {
		for name, asked := range map[string]func(key string) *creation{
			"twin":        func(key string) *creation { return h.createUnder(t, key, "Bakery") },
			"other input": func(key string) *creation { return h.createUnder(t, key, "Florist") },
			"other key":   func(string) *creation { return h.create(t, "Bakery") },
		} {
			key := name + " of a " + f.String()
			first, c := h.createUnder(t, key, "Bakery"), asked(key)
			c.first = func(ctx context.Context, _ txn.Tx, _ int) error {
				first.mustBeOwn(t, h, first.run(ctx, db, inTransaction), 1)
				return domain.Refuse(domain.CodeNotFound, nil, "nothing is left")
			}
			switch a := c.run(t.Context(), db, f); name {
			case "twin":
				c.mustReplay(t, a, first, 1)
			case "other input":
				c.mustBeReused(t, a, 1)
			default:
				a.mustFail(t, domain.CodeNotFound)
			}
		}
	}
}

// A pool of one connection is enough for a request: what reads the winner does not wait for the
// connection of the statement that lost.
func TestOneConnectionIsEnough(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	db := h.dbAt(t, h.URL, 1, txn.Settings{})
	for _, f := range forms {
		first := h.createUnder(t, "key of a "+f.String(), "Bakery")
		again := first.again(t, h)
		won, lost := h.race(t, h.db(t, txn.Settings{}), db, first, again, f)
		first.mustBeOwn(t, h, won, 1)
		again.mustReplay(t, lost, first, 1)
	}
}

// race overlaps two writes of one key, each on a server of its own: the second's insertion waits
// for the first's COMMIT.
func (h *house) race(t *testing.T, one, other *txn.DB, first, second *creation, f form) (won, lost answer) {
	t.Helper()
	gate := h.Gate(t, "commit")
	winner := first.start(t.Context(), one, inTransaction)
	gate.Await(t, 1)
	loser := second.start(t.Context(), other, f)
	h.AwaitLockWaits(t, 1)
	gate.Open()
	return <-winner, <-loser
}

// mustReplay checks that an earlier request's row is the answer, after so many runs of this one.
func (c *creation) mustReplay(t *testing.T, a answer, earlier *creation, runs int) {
	t.Helper()
	if a.err != nil {
		t.Fatalf("got %v, want the earlier request's row", a.err)
	}
	if !a.out.Replayed || a.out.Value.ID != earlier.id || a.out.Key != c.op.Key || a.out.KeyMade {
		t.Errorf("got %+v, want the earlier request's row, replayed", a.out)
	}
	c.mustHaveTried(t, runs)
}

// mustBeReused checks for IDEMPOTENCY_KEY_REUSED with nothing of the other row in it.
func (c *creation) mustBeReused(t *testing.T, a answer, runs int) {
	t.Helper()
	a.mustFail(t, domain.CodeIdempotencyKeyReused)
	if a.err != nil && strings.Contains(a.err.Error(), "Bakery") {
		t.Errorf("the refusal tells of the other row: %v", a.err)
	}
	c.mustHaveTried(t, runs)
}
