package txn_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"countersign/internal/domain"
	"countersign/internal/testdb"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// A closure that swallows the error of a statement leaves a transaction that the server can only
// roll back, and it answers COMMIT without an error. That is a failure, never success.
func TestACommitThatRolledBackIsAFailure(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	db := h.db(t, txn.Settings{})
	c := h.create(t, "") // a name has at least one character
	write := c.as(inTransaction)
	write.Apply = func(ctx context.Context, tx txn.Tx) (*sqlc.Customer, error) {
		_, err := c.apply(ctx, tx)
		if err == nil {
			t.Error("the insertion was to fail")
		}
		return &sqlc.Customer{ID: c.id}, nil
	}
	var a answer
	a.out, a.err = txn.Run(t.Context(), db, write)
	a.mustFail(t, domain.CodeInternal)
	if !errors.Is(a.err, pgx.ErrTxCommitRollback) {
		t.Errorf("got %v, want the rollback for the log", a.err)
	}
	c.mustHaveTried(t, 1)
	h.mustHave(t, 0)
}

// A constraint that is checked at COMMIT answers there, and the answer is definite: decided by its
// name like any other, never unknown, and not run again.
func TestAnErrorResponseAtCommitIsDefinite(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.Exec(t, "ALTER TABLE access_tokens ALTER CONSTRAINT access_tokens_customer_fkey DEFERRABLE INITIALLY DEFERRED")
	db := h.db(t, txn.Settings{})
	for _, f := range forms {
		nobody := domain.NewID[domain.CustomerID]()
		row, runs, inserted := h.tokenRow(domain.NewID[domain.TokenID](), &nobody), 0, false
		_, err := txn.Run(t.Context(), db, txn.Write[*sqlc.AccessToken]{
			OneStatement: bool(f),
			Apply: func(ctx context.Context, tx txn.Tx) (*sqlc.AccessToken, error) {
				runs++
				token, err := tx.InsertAccessToken(ctx, row)
				inserted = err == nil
				return token, err
			},
		})
		mustRefer(t, err, domain.CodeNotFound, "customerId")
		if runs != 1 || inserted == bool(f) {
			t.Errorf("%s: %d runs, want 1; the insertion succeeded: %v", f, runs, inserted)
		}
	}
	if n := testdb.Scan[int](t, h.DB, "SELECT count(*) FROM access_tokens"); n != 0 {
		t.Errorf("there are %d tokens, want none", n)
	}
}
