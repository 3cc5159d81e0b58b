package pgproxy_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"countersign/internal/testdb/pgproxy"
)

func TestCancelRequest(t *testing.T) {
	t.Parallel()
	p := pgproxy.New(t, server)
	config, err := pgx.ParseConfig(p.URL())
	check(t, err, "URL")
	running := make(chan struct{})
	config.OnNotice = func(*pgconn.PgConn, *pgconn.Notice) { close(running) }
	conn, err := pgx.ConnectConfig(deadline(t), config)
	check(t, err, "connect")
	t.Cleanup(func() { _ = conn.Close(context.Background()) })

	// A notice is sent at once, so the statement is known to be running.
	done := start(func() error {
		_, err := conn.Exec(deadline(t), "DO $$ BEGIN RAISE NOTICE 'running'; PERFORM pg_sleep(600); END $$")
		return err
	})
	select {
	case <-running:
	case err := <-done:
		t.Fatalf("did not run: %v", err)
	}
	check(t, conn.PgConn().CancelRequest(deadline(t)), "cancel")
	var pgErr *pgconn.PgError
	if err := <-done; !errors.As(err, &pgErr) || pgErr.Code != pgerrcode.QueryCanceled {
		t.Fatalf("got %v, want the query cancelled", err)
	}
	check(t, conn.Ping(deadline(t)), "the connection after the cancelled query")
}

func TestRefuseAndCutAll(t *testing.T) {
	t.Parallel()
	p := pgproxy.New(t, server)
	first, second := connect(t, p.URL()), connect(t, p.URL())
	hold := p.Hold(pgproxy.Query("InsertRow"))
	held := start(func() error { return insert(deadline(t), first, newID()) })
	wait(t, hold)

	p.Refuse(true)
	if conn, err := pgx.Connect(deadline(t), p.URL()); err == nil {
		_ = conn.Close(context.Background())
		t.Fatal("a new connection was not refused")
	}
	check(t, second.Ping(deadline(t)), "an existing connection")
	p.CutAll()
	if <-held == nil || second.Ping(deadline(t)) == nil {
		t.Fatal("a connection survived")
	}
	p.Refuse(false)
	check(t, insert(deadline(t), connect(t, p.URL()), newID()), "after the outage")
}

// A client that prefers encryption is told there is none; a proxy can be the
// upstream of another, over TCP.
func TestEncryptionDeclinedAndTCPUpstream(t *testing.T) {
	t.Parallel()
	inner := pgproxy.New(t, server)
	outer := pgproxy.New(t, inner.URL())
	id := newID()
	conn := connect(t, strings.Replace(outer.URL(), "sslmode=disable", "sslmode=prefer", 1))
	check(t, insert(deadline(t), conn, id), "insert")
	if !visible(t, id) {
		t.Fatal("not there")
	}
}

func TestNoUpstream(t *testing.T) {
	t.Parallel()
	p := pgproxy.New(t, "postgres://nobody@/none?host="+filepath.Join(t.TempDir(), "none"))
	if conn, err := pgx.Connect(deadline(t), p.URL()); err == nil {
		_ = conn.Close(context.Background())
		t.Fatal("connected to nothing")
	}
}

func TestCommitIsRecognised(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]bool{
		"commit": true, "COMMIT;": true, " Commit Work": true, "end": true,
		"-- name: Finish :exec\nCOMMIT": true,
		"select 'commit'":               false, "rollback": false, "commitment": false, "": false, "-- commit": false,
	} {
		p := pgproxy.New(t, server)
		conn := connect(t, p.URL())
		fault := p.CutBefore(pgproxy.Commit())
		_, err := conn.Exec(deadline(t), sql, pgx.QueryExecModeSimpleProtocol)
		if got := fault.Count() == 1; got != want {
			t.Errorf("%q recognised: %v, want %v (%v)", sql, got, want, err)
		}
	}
}
