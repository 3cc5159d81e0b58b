package pgproxy_test

import (
	"context"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"

	"countersign/internal/testdb/pgproxy"
)

// work is a small transaction that uses every shape of exchange: simple and
// extended queries, a pipeline, COPY. It returns what the client knows: ok, or
// an error after which the rows may be there if COMMIT was sent.
func work(ctx context.Context, conn *pgx.Conn, id, copied int) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, insertRow, id); err != nil {
			return err
		}
		b := &pgx.Batch{}
		b.Queue("SELECT 1")
		b.Queue("SELECT id FROM rows WHERE id = $1 FOR UPDATE", id)
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		_, err := tx.CopyFrom(ctx, pgx.Identifier{"rows"}, []string{"id"}, pgx.CopyFromRows([][]any{{copied}}))
		return err
	})
}

// opened does the same on a connection of its own, which adds the startup.
func opened(ctx context.Context, url string, id, copied int) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	err = work(ctx, conn, id, copied)
	_ = conn.Close(ctx)
	return err
}

// withPassword makes the startup an exchange of several messages.
func withPassword(t *testing.T, p *pgproxy.Proxy) string {
	u, err := url.Parse(p.URL())
	check(t, err, "URL")
	u.User = url.UserPassword("with_password", "secret")
	return u.String()
}

type armed interface {
	Wait(context.Context) error
	Disarm()
	Count() int
}

// everywhere arms the rule at the first, second, ... message of a transaction
// until it is no longer reached, and calls step with what came of it.
func everywhere(t *testing.T, arm func(p *pgproxy.Proxy, k int) armed, during func(armed),
	step func(k int, err error, kept bool)) {
	p := pgproxy.New(t, server)
	address := withPassword(t, p)
	for k := 1; ; k++ {
		id, copied := newID(), newID()
		f := arm(p, k)
		done := start(func() error { return opened(deadline(t), address, id, copied) })
		reached := make(chan error, 1)
		ctx, cancel := context.WithCancel(deadline(t))
		go func() { reached <- f.Wait(ctx) }()
		var err error
		select {
		case e := <-reached:
			check(t, e, "message %d", k)
			during(f)
			err = <-done
		case err = <-done:
		}
		cancel()
		f.Disarm()
		kept := settled(t, id)
		if kept != settled(t, copied) {
			t.Fatalf("message %d: half a transaction", k)
		}
		if err == nil && !kept {
			t.Fatalf("message %d: an acknowledged row is lost", k)
		}
		step(k, err, kept)
		if f.Count() == 0 {
			if k < 20 {
				t.Fatalf("only %d messages were reached", k-1)
			}
			check(t, err, "no fault, %d messages", k-1)
			return
		}
	}
}

func nothing(armed) {}

func TestCutBeforeEveryFrontendMessage(t *testing.T) {
	t.Parallel()
	everywhere(t, func(p *pgproxy.Proxy, k int) armed { return p.CutBefore(pgproxy.FrontendMessage(k)) },
		nothing, func(k int, err error, kept bool) {
			if kept && err != nil {
				t.Fatalf("message %d: rows without COMMIT, %v", k, err)
			}
		})
}

func TestCutAfterEveryFrontendMessage(t *testing.T) {
	t.Parallel()
	lost := 0
	everywhere(t, func(p *pgproxy.Proxy, k int) armed { return p.CutAfter(pgproxy.FrontendMessage(k)) },
		nothing, func(_ int, err error, kept bool) {
			if kept && err != nil {
				lost++
			}
		})
	if lost != 1 {
		t.Fatalf("the answer to COMMIT was lost %d times, want once", lost)
	}
}

// COMMIT is answered with two messages, CommandComplete and ReadyForQuery, and
// pgx believes in success only after both.
func TestCutBeforeEveryBackendMessage(t *testing.T) {
	t.Parallel()
	lost := 0
	everywhere(t, func(p *pgproxy.Proxy, k int) armed { return p.CutBefore(pgproxy.BackendMessage(k)) },
		nothing, func(_ int, err error, kept bool) {
			if kept && err != nil {
				lost++
			}
		})
	if lost != 2 {
		t.Fatalf("the answer to COMMIT was lost %d times, want twice", lost)
	}
}

func TestCutAfterEveryBackendMessage(t *testing.T) {
	t.Parallel()
	lost := 0
	everywhere(t, func(p *pgproxy.Proxy, k int) armed { return p.CutAfter(pgproxy.BackendMessage(k)) },
		nothing, func(_ int, err error, kept bool) {
			if kept && err != nil {
				lost++
			}
		})
	if lost != 1 { // in particular, COMMIT is not let through after the message before it
		t.Fatalf("the answer to COMMIT was lost %d times, want once", lost)
	}
}

func TestHoldEveryMessage(t *testing.T) {
	t.Parallel()
	for name, arm := range map[string]func(*pgproxy.Proxy, int) armed{
		"frontend": func(p *pgproxy.Proxy, k int) armed { return p.Hold(pgproxy.FrontendMessage(k)) },
		"answer":   func(p *pgproxy.Proxy, k int) armed { return p.HoldAnswer(pgproxy.FrontendMessage(k)) },
		"backend":  func(p *pgproxy.Proxy, k int) armed { return p.Hold(pgproxy.BackendMessage(k)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			everywhere(t, arm, func(a armed) { a.(*pgproxy.Hold).Release() },
				func(k int, err error, _ bool) { check(t, err, "message %d was only held", k) })
		})
	}
}
