package txn_test

import (
	"fmt"
	"testing"

	"countersign/internal/testdb/pgproxy"
	"countersign/internal/txn"
)

// sent is the moment at which a creation's own transaction is decided: COMMIT leaves the client,
// or the statement that is its own COMMIT.
func sent(f form) pgproxy.Point {
	if f == oneStatement {
		return pgproxy.Query("InsertCustomer")
	}
	return pgproxy.Commit()
}

// The connection is cut when COMMIT has left the client: before the server has seen it, or after
// the server has committed and answered. To the client both look the same. It gets the row, once,
// as its own work, under the key of this request.
func TestALostAnswerToCommitIsOneEffect(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for _, f := range forms {
		for name, cut := range map[string]func(*pgproxy.Proxy, pgproxy.Point) *pgproxy.Fault{
			"before": (*pgproxy.Proxy).CutBefore, "after": (*pgproxy.Proxy).CutAfter,
		} {
			for _, given := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, key given %v", f, name, given), func(t *testing.T) {
					t.Parallel()
					proxy, db := h.behind(t, txn.Settings{})
					c := h.create(t, "Bakery")
					if given {
						c = h.createUnder(t, t.Name(), "Bakery")
					}
					lost := cut(proxy, sent(f))
					c.mustBeOwn(t, h, c.run(t.Context(), db, f), 2)
					if n := lost.Count(); n != 1 {
						t.Errorf("the connection was cut %d times, want 1", n)
					}
				})
			}
		}
	}
}

// A connection lost before COMMIT has left the client is a transaction that never was: however
// often, up to four times, the write runs again, and nothing is unknown.
func TestAConnectionLostBeforeCommitIsRetried(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	for name, at := range map[string]pgproxy.Point{
		"before the statement": pgproxy.Query("InsertCustomer"),
		"before BEGIN":         pgproxy.Statement(func(sql string) bool { return sql == "begin" }),
	} {
		for _, losses := range []int{1, 4} {
			t.Run(fmt.Sprintf("%s, %d times", name, losses), func(t *testing.T) {
				t.Parallel()
				proxy, db := h.behind(t, txn.Settings{})
				c := h.create(t, "Bakery")
				lost := proxy.CutBefore(at.Times(losses))
				a := c.run(t.Context(), db, inTransaction)
				c.mustBeOwn(t, h, a, int(c.attempts.Load()))
				if n := lost.Count(); n != losses {
					t.Errorf("the connection was cut %d times, want %d", n, losses)
				}
			})
		}
	}
}
