package pgproxy_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"countersign/internal/testdb/pgproxy"
)

// An answer that has begun is not complete: here with a notice, which the server
// sends at once, before it waits for a lock.
func TestHoldAnswerWaitsForAllOfIt(t *testing.T) {
	t.Parallel()
	p := pgproxy.New(t, server)
	conn, rival, id := connect(t, p.URL()), connect(t, server), newID()
	tx, err := rival.Begin(deadline(t))
	check(t, err, "begin")
	_, err = tx.Exec(deadline(t), insertRow, id)
	check(t, err, "the rival's insert")

	hold := p.HoldAnswer(pgproxy.Query("Noisy"))
	const noisy = "-- name: Noisy :exec\nDO $$ BEGIN RAISE NOTICE 'begun'; END $$; " + insertRow
	done := start(func() error {
		_, err := conn.Exec(deadline(t), noisy, pgx.QueryExecModeSimpleProtocol, id)
		return err
	})
	for blocked, pid := false, int(conn.PgConn().PID()); !blocked; {
		err := direct.QueryRow(deadline(t), "SELECT cardinality(pg_blocking_pids($1)) > 0", pid).Scan(&blocked)
		check(t, err, "look who waits")
	}
	mustCount(t, hold.Fault, 0)

	check(t, tx.Rollback(deadline(t)), "the rival's rollback")
	wait(t, hold)
	if !visible(t, id) {
		t.Fatal("held before it was done")
	}
	hold.Release()
	check(t, <-done, "after release")
}

// A server that dies of the statement has answered, too.
func TestAnswerEndsWithTheConnection(t *testing.T) {
	t.Parallel()
	const suicide = "-- name: Suicide :exec\nSELECT pg_terminate_backend(pg_backend_pid())"
	p := pgproxy.New(t, server)

	hold, conn := p.HoldAnswer(pgproxy.Query("Suicide")), connect(t, p.URL())
	done := start(func() error { _, err := conn.Exec(deadline(t), suicide); return err })
	wait(t, hold)
	hold.Release()
	var pgErr *pgconn.PgError
	if err := <-done; !errors.As(err, &pgErr) || pgErr.Code != pgerrcode.AdminShutdown {
		t.Fatalf("got %v, want the server's last words", err)
	}

	cut, conn := p.CutAfter(pgproxy.Query("Suicide")), connect(t, p.URL())
	_, err := conn.Exec(deadline(t), suicide)
	if err == nil || errors.As(err, &pgErr) {
		t.Fatalf("got %v, want a lost connection", err)
	}
	wait(t, cut)
}

// COPY is answered twice: with leave to send, and when all was sent. pgx does not
// wait for the first, other clients do.
func TestCopyIsAnsweredTwice(t *testing.T) {
	t.Parallel()
	p := pgproxy.New(t, server)
	conn := connect(t, p.URL())
	raw := conn.PgConn().Frontend()
	leave := p.HoldAnswer(pgproxy.Query("CopyRows"))
	raw.Send(&pgproto3.Query{String: "-- name: CopyRows :copyfrom\nCOPY rows FROM STDIN"})
	check(t, raw.Flush(), "send")
	wait(t, leave)
	leave.Release()
	m, err := raw.Receive()
	check(t, err, "receive")
	if _, ok := m.(*pgproto3.CopyInResponse); !ok {
		t.Fatalf("got %T, want leave to send", m)
	}

	result := p.HoldAnswer(pgproxy.FrontendMessage(1))
	raw.Send(&pgproto3.CopyDone{})
	check(t, raw.Flush(), "send")
	wait(t, result)
	result.Release()
	for {
		m, err := raw.Receive()
		check(t, err, "receive")
		if _, ok := m.(*pgproto3.ReadyForQuery); ok {
			return
		}
	}
}
