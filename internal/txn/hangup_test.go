package txn_test

import (
	"context"
	"testing"

	"countersign/internal/domain"
	"countersign/internal/txn"
)

// A client that hangs up once its write has begun leaves the whole effect, at whichever statement
// it goes.
func TestAClientThatHangsUpLeavesTheWholeEffect(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	db := h.db(t, txn.Settings{})
	for _, moment := range []struct {
		f  form
		at string
	}{{inTransaction, "begin"}, {inTransaction, "InsertCustomer"}, {inTransaction, "commit"}, {oneStatement, "InsertCustomer"}} {
		ctx, hangUp := context.WithCancel(t.Context())
		h.Before(moment.at, func(context.Context) { hangUp() })
		c := h.create(t, "Bakery")
		c.mustBeOwn(t, h, c.run(ctx, db, moment.f), 1)
		h.Before(moment.at, nil)
		if ctx.Err() == nil {
			t.Errorf("%s: nobody hung up", moment.at)
		}
	}
}

// Retries go on without the client, too.
func TestAClientThatHangsUpStopsNoRetry(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.raise(t)
	db := h.db(t, txn.Settings{})
	ctx, hangUp := context.WithCancel(t.Context())
	c := h.createUnder(t, "key", demand(atStatement, 1, 2, "40001"))
	c.first = func(context.Context, txn.Tx, int) error {
		hangUp()
		return nil
	}
	c.mustBeOwn(t, h, c.run(ctx, db, inTransaction), 3)
}

// A client that hung up before its write began leaves nothing.
func TestAClientThatIsGoneBeginsNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	db := h.db(t, txn.Settings{})
	ctx, hangUp := context.WithCancel(t.Context())
	hangUp()
	for _, c := range []*creation{h.create(t, "Bakery"), h.createUnder(t, "key", "Bakery")} {
		for _, f := range forms {
			c.run(ctx, db, f).mustFail(t, domain.CodeUnavailable)
			c.mustHaveTried(t, 0)
		}
	}
	h.mustHave(t, 0)
}
