package pgproxy_test

import (
	"context"
	"testing"

	"countersign/internal/testdb/pgproxy"
)

func TestCutAtCommit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		arm  func(*pgproxy.Proxy, pgproxy.Point) *pgproxy.Fault
		kept bool
	}{
		"before": {(*pgproxy.Proxy).CutBefore, false},
		"after":  {(*pgproxy.Proxy).CutAfter, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := pgproxy.New(t, server)
			conn, id := connect(t, p.URL()), newID()
			fault := c.arm(p, pgproxy.Commit())

			if err := insert(deadline(t), conn, id); err == nil {
				t.Fatal("the client was told of success")
			}
			wait(t, fault)
			mustCount(t, fault, 1)
			// Cut after means executed: whoever waited for the fault sees the row.
			if c.kept && !visible(t, id) {
				t.Fatal("the row is not there yet")
			}
			if got := settled(t, id); got != c.kept {
				t.Fatalf("row is there: %v, want %v", got, c.kept)
			}
			check(t, insert(deadline(t), connect(t, p.URL()), newID()), "a commit after the spent rule")
		})
	}
}

func TestHoldCommit(t *testing.T) {
	t.Parallel()
	p := pgproxy.New(t, server)
	conn, id := connect(t, p.URL()), newID()
	hold := p.Hold(pgproxy.Commit())
	done := start(func() error { return insert(deadline(t), conn, id) })

	wait(t, hold)
	<-hold.Fired()
	if visible(t, id) {
		t.Fatal("committed although held")
	}
	// Others pass meanwhile.
	check(t, insert(deadline(t), connect(t, p.URL()), newID()), "another connection")
	hold.Release()
	check(t, <-done, "commit after release")
	if !visible(t, id) {
		t.Fatal("not committed after release")
	}
	hold.Release() // may be repeated
	hold.Cut()
	check(t, conn.Ping(deadline(t)), "the connection after release")
}

func TestHoldCommitAndCut(t *testing.T) {
	t.Parallel()
	p := pgproxy.New(t, server)
	conn, id := connect(t, p.URL()), newID()
	hold := p.Hold(pgproxy.Commit())
	done := start(func() error { return insert(deadline(t), conn, id) })

	wait(t, hold)
	hold.Cut()
	if <-done == nil {
		t.Fatal("the client was told of success")
	}
	if settled(t, id) {
		t.Fatal("a COMMIT that was cut has arrived")
	}
}

func TestHoldAnswer(t *testing.T) {
	t.Parallel()
	p := pgproxy.New(t, server)
	conn, id := connect(t, p.URL()), newID()
	hold := p.HoldAnswer(pgproxy.Commit())
	done := start(func() error { return insert(deadline(t), conn, id) })

	wait(t, hold)
	if !visible(t, id) {
		t.Fatal("not committed")
	}
	select {
	case err := <-done:
		t.Fatalf("the client has its answer: %v", err)
	default:
	}
	hold.Release()
	check(t, <-done, "commit after release")
	check(t, conn.Ping(deadline(t)), "the connection after release")
}

func TestHoldAnswerAndCut(t *testing.T) {
	t.Parallel()
	p := pgproxy.New(t, server)
	conn, id := connect(t, p.URL()), newID()
	hold := p.HoldAnswer(pgproxy.Commit())
	done := start(func() error { return insert(deadline(t), conn, id) })

	wait(t, hold)
	hold.Cut()
	if <-done == nil {
		t.Fatal("the client was told of success")
	}
	if !visible(t, id) {
		t.Fatal("not committed")
	}
}

// A COMMIT still in the wire when the client gives up takes effect later.
func TestClientGoneWhileHeld(t *testing.T) {
	t.Parallel()
	p := pgproxy.New(t, server)
	conn, id := connect(t, p.URL()), newID()
	hold := p.Hold(pgproxy.Commit())
	done := start(func() error { return insert(context.Background(), conn, id) })

	wait(t, hold)
	check(t, conn.PgConn().Conn().Close(), "hang up")
	if <-done == nil {
		t.Fatal("the client was told of success")
	}
	if visible(t, id) {
		t.Fatal("committed although held")
	}
	hold.Release()
	if !settled(t, id) {
		t.Fatal("the COMMIT was lost")
	}
}

// A server that ends while its client's COMMIT is held ends the client as well,
// at once.
func TestBackendTerminatedWhileHeld(t *testing.T) {
	t.Parallel()
	p := pgproxy.New(t, server)
	conn, id := connect(t, p.URL()), newID()
	hold := p.Hold(pgproxy.Commit())
	done := start(func() error { return insert(deadline(t), conn, id) })

	wait(t, hold)
	_, err := connect(t, server).Exec(deadline(t), "SELECT pg_terminate_backend($1)", int(conn.PgConn().PID()))
	check(t, err, "terminate")
	if <-done == nil {
		t.Fatal("the client was told of success")
	}
	hold.Release()
	if settled(t, id) {
		t.Fatal("committed")
	}
}
