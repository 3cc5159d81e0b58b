package pgproxy_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"countersign/internal/testdb/pgproxy"
)

// deadline is for what must not hang.
func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(deadline(t), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

var lastID atomic.Int32

// newID is a row no other test uses.
func newID() int { return int(lastID.Add(1)) }

const insertRow = "-- name: InsertRow :exec\nINSERT INTO rows (id) VALUES ($1)"

// insert adds the row in a transaction, the way the server does its writes.
func insert(ctx context.Context, conn *pgx.Conn, id int) error {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, insertRow, id); err != nil {
		_ = tx.Rollback(ctx)
		return err
	}
	return tx.Commit(ctx)
}

// start runs f and hands over its result when it is there.
func start(f func() error) <-chan error {
	result := make(chan error, 1)
	go func() { result <- f() }()
	return result
}

// visible tells whether others can see the row now.
func visible(t *testing.T, id int) bool {
	t.Helper()
	var found bool
	err := direct.QueryRow(deadline(t), "SELECT EXISTS (SELECT FROM rows WHERE id = $1)", id).Scan(&found)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// settled tells whether the row is there for good. Inserting the same key waits
// for a transaction that is still about to insert it.
func settled(t *testing.T, id int) bool {
	t.Helper()
	tx, err := direct.Begin(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	_, err = tx.Exec(deadline(t), insertRow, id)
	if e := tx.Rollback(deadline(t)); e != nil {
		t.Fatal(e)
	}
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == pgerrcode.UniqueViolation {
		return true
	}
	if err != nil {
		t.Fatal(err)
	}
	return false
}

func wait(t *testing.T, f interface{ Wait(context.Context) error }) {
	t.Helper()
	if err := f.Wait(deadline(t)); err != nil {
		t.Fatal(err)
	}
}

// mustCount checks how often the fault happened.
func mustCount(t *testing.T, f *pgproxy.Fault, want int) {
	t.Helper()
	if got := f.Count(); got != want {
		t.Fatalf("the fault happened %d times, want %d", got, want)
	}
}

// check is for steps that must succeed.
func check(t *testing.T, err error, format string, args ...any) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", fmt.Sprintf(format, args...), err)
	}
}
