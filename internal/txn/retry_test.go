package txn_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"countersign/internal/domain"
	"countersign/internal/testdb/pgproxy"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// Two writes that lock two rows in opposite order, each holding its first lock before either asks
// for the second: the database ends one, and its user never hears of it.
func TestADeadlockIsRetriedAndBothTakeEffect(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.Exec(t, "ALTER DATABASE "+h.Name+" SET deadlock_timeout = '20ms'") // instead of a second
	db := h.db(t, txn.Settings{})
	a, b := h.series(t, "A"), h.series(t, "B")

	locked := make(chan struct{}, 2)
	both := make(chan struct{})
	locking := func(series ...domain.SeriesID) *creation {
		c := h.create(t, "Bakery")
		c.first = func(ctx context.Context, tx txn.Tx, attempt int) error {
			for i, id := range series {
				if _, err := tx.LockSeriesCounter(ctx, sqlc.LockSeriesCounterParams{TenantID: h.tenant, SeriesID: id}); err != nil {
					return err
				}
				if attempt == 1 && i == 0 {
					locked <- struct{}{}
					<-both
				}
			}
			return nil
		}
		return c
	}
	one, two := locking(a, b), locking(b, a)
	first, second := one.start(t.Context(), db, inTransaction), two.start(t.Context(), db, inTransaction)
	<-locked
	<-locked
	close(both)

	one.mustBeOwn(t, h, <-first, 1+len(one.codes))
	two.mustBeOwn(t, h, <-second, 1+len(two.codes))
	// Rarely more than one: the loser's next run may overtake the winner before it is woken.
	met := slices.Concat(one.codes, two.codes)
	if !slices.Contains(met, "40P01") || len(slices.Compact(met)) != 1 {
		t.Errorf("met %v, want a deadlock", met)
	}
}

// What collided runs again as a whole, five times in all, whether the collision shows at the
// statement or at COMMIT; then the user is told that the server is busy, and nothing is written.
func TestACollisionIsRetriedFiveTimes(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.raise(t)
	db := h.db(t, txn.Settings{})
	for _, code := range []string{"40001", "40P01"} {
		for _, at := range []where{atStatement, atCommit} {
			for _, f := range forms {
				for _, failures := range []int{1, 4, 5} {
					t.Run(fmt.Sprintf("%s %s, %s, %d times", code, at, f, failures), func(t *testing.T) {
						t.Parallel()
						c := h.create(t, demand(at, 1, failures, code))
						a := c.run(t.Context(), db, f)
						if failures < 5 {
							c.mustBeOwn(t, h, a, failures+1)
							if want := fmt.Sprintf("attempt@%d", failures+1); *a.out.Value.Email != want {
								t.Errorf("got the row of %s, want %s", *a.out.Value.Email, want)
							}
							return
						}
						a.mustFail(t, domain.CodeBusy)
						c.mustHaveTried(t, 5)
						c.mustHaveRows(t, h, 0)
					})
				}
			}
		}
	}
}

// A guard that found no row has everything read again: here a token is revoked by another between
// the write's read and its update, and the second run sees that.
func TestARefusedGuardReadsEverythingAgain(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	db := h.db(t, txn.Settings{})
	token := h.token(t)
	c := h.create(t, "Bakery")
	var seen []bool
	c.first = func(ctx context.Context, tx txn.Tx, attempt int) error {
		row, err := tx.GetAccessToken(ctx, sqlc.GetAccessTokenParams{TenantID: h.tenant, ID: token})
		if err != nil {
			return err
		}
		if seen = append(seen, row.RevokedAt != nil); row.RevokedAt != nil {
			return nil // nothing left to do: the domain's decision on what is read now
		}
		if attempt == 1 {
			h.Exec(t, "UPDATE access_tokens SET revoked_at = now()")
		}
		return h.revoke(ctx, tx, token)
	}
	c.mustBeOwn(t, h, c.run(t.Context(), db, inTransaction), 2)
	if !slices.Equal(seen, []bool{false, true}) {
		t.Errorf("the runs saw the token revoked: %v, want false, then true", seen)
	}
}

// A guard that finds no row because the write's own first run moved it, and the answer to that COMMIT
// was lost: the operation is looked up before anything is decided, and the answer is success.
func TestAGuardRefusedByItsOwnEarlierRunIsSuccess(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	proxy, db := h.behind(t, txn.Settings{})
	token := h.token(t)
	c := h.create(t, "Bakery")
	var refused []bool
	c.first = func(ctx context.Context, tx txn.Tx, _ int) error {
		err := h.revoke(ctx, tx, token)
		refused = append(refused, errors.Is(err, txn.ErrRefused))
		return err
	}
	proxy.CutAfter(pgproxy.Commit())
	c.mustBeOwn(t, h, c.run(t.Context(), db, inTransaction), 2)
	if !slices.Equal(refused, []bool{false, true}) {
		t.Errorf("the guard refused %v, want the second run alone", refused)
	}
}

// A guard that is refused every time is BUSY after five runs, and what else they wrote is gone.
func TestAGuardRefusedEveryTimeIsBusy(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	db := h.db(t, txn.Settings{})
	token := h.token(t)
	h.Exec(t, "UPDATE access_tokens SET revoked_at = now()")
	c := h.create(t, "Bakery")
	write := c.as(inTransaction)
	write.Apply = func(ctx context.Context, tx txn.Tx) (*sqlc.Customer, error) {
		row, err := c.apply(ctx, tx)
		return row, errors.Join(err, h.revoke(ctx, tx, token))
	}
	var a answer
	a.out, a.err = txn.Run(t.Context(), db, write)
	a.mustFail(t, domain.CodeBusy)
	c.mustHaveTried(t, 5)
	h.mustHave(t, 0)
}

// An error that another attempt would meet again is not tried again.
func TestADecisionIsNotRetried(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	db := h.db(t, txn.Settings{})
	for _, f := range forms {
		for _, decision := range []error{
			domain.Refuse(domain.CodeNotFound, nil, "no such thing"),
			errors.Join(domain.Refuse(domain.CodeInvalidQuantity, nil, "one"), domain.Refuse(domain.CodeInvalidQuantity, nil, "two")),
			errors.New("a defect"),
		} {
			c := h.create(t, "Bakery")
			c.first = func(context.Context, txn.Tx, int) error { return decision }
			a := c.run(t.Context(), db, f)
			if !errors.Is(a.err, decision) {
				t.Errorf("got %v, want the decision itself: %v", a.err, decision)
			}
			a.mustFail(t, code(decision))
			c.mustHaveTried(t, 1)
		}
	}
	h.mustHave(t, 0)
}
