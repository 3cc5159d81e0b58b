package txn_test

import (
	"net"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"countersign/internal/database"
	"countersign/internal/domain"
	"countersign/internal/txn"
)

// Whoever waits for a lock, a statement or a connection longer than a request may is told BUSY,
// long before the write's own deadline, and nothing is applied.
func TestWaitingTooLongIsBusy(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	lock, err := h.Owner(t).Begin(t.Context())
	check(t, err)
	_, err = lock.Exec(t.Context(), "LOCK TABLE customers IN SHARE MODE")
	check(t, err)
	for setting, met := range map[string]string{"lock_timeout=100ms": "55P03", "statement_timeout=100ms": "57014"} {
		db := h.dbAt(t, h.with(t, setting), 0, txn.Settings{})
		for _, f := range forms {
			c := h.create(t, "Bakery")
			begun := time.Now()
			c.run(t.Context(), db, f).mustFail(t, domain.CodeBusy)
			mustBeQuick(t, begun)
			c.mustHaveTried(t, 1)
			if !slices.Equal(c.codes, []string{met}) {
				t.Errorf("%s: met %v, want %s", setting, c.codes, met)
			}
		}
	}
	check(t, lock.Rollback(t.Context()))
	h.settle(t)
	h.mustHave(t, 0)
}

// A pool whose connections are all in use answers BUSY, to reads and writes, with a key or without;
// once one is back, the same key works.
func TestAnExhaustedPoolIsBusy(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	db := h.dbAt(t, h.URL, 1, txn.Settings{AcquireTimeout: 100 * time.Millisecond})
	leave := occupy(t, h.pool(db))
	for _, c := range []*creation{h.create(t, "Bakery"), h.createUnder(t, "key", "Bakery")} {
		begun := time.Now()
		c.run(t.Context(), db, inTransaction).mustFail(t, domain.CodeBusy)
		mustBeQuick(t, begun)
		c.mustHaveTried(t, 0)
	}
	for name, read := range reads {
		if _, err := read(t.Context(), db, h.list); code(err) != domain.CodeBusy {
			t.Errorf("%s: got %v, want BUSY", name, err)
		}
	}
	leave()
	c := h.createUnder(t, "key", "Bakery")
	c.mustBeOwn(t, h, c.run(t.Context(), db, inTransaction), 1)
}

// A server that lets nobody in any more is BUSY, too: it says so itself.
func TestTooManyConnectionsIsBusy(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	login := h.Name + "_login"
	h.Exec(t, "CREATE ROLE "+login+" LOGIN CONNECTION LIMIT 0 IN ROLE "+database.RuntimeRole)
	t.Cleanup(func() { h.Exec(t, "DROP ROLE "+login) })
	config, err := pgxpool.ParseConfig(h.URL)
	check(t, err)
	config.ConnConfig.User = login
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	check(t, err)
	t.Cleanup(pool.Close)
	c := h.create(t, "Bakery")
	a := c.run(t.Context(), txn.New(pool, txn.Settings{}), inTransaction)
	a.mustFail(t, domain.CodeBusy)
	c.mustHaveTried(t, 0)
}

// A server that only reads, as a replica does after a failover, is UNAVAILABLE to writes.
func TestAReadOnlyServerIsUnavailable(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	db := h.dbAt(t, h.with(t, "default_transaction_read_only=on"), 0, txn.Settings{})
	for _, f := range forms {
		c := h.create(t, "Bakery")
		c.run(t.Context(), db, f).mustFail(t, domain.CodeUnavailable)
		c.mustHaveTried(t, 1)
	}
	_, err := txn.Read(t.Context(), db, h.list)
	check(t, err)
}

// A server that does not know the database, as one that is being set up, is UNAVAILABLE.
func TestAServerWithoutTheDatabaseIsUnavailable(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	config, err := pgxpool.ParseConfig(h.URL)
	check(t, err)
	config.ConnConfig.Database = h.Name + "_that_is_not"
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	check(t, err)
	t.Cleanup(pool.Close)
	c := h.create(t, "Bakery")
	c.run(t.Context(), txn.New(pool, txn.Settings{}), inTransaction).mustFail(t, domain.CodeUnavailable)
	c.mustHaveTried(t, 0)
}

// Nobody listens: UNAVAILABLE at once, to writes and reads. The server may go at any time: what a
// write had not yet sent to be committed is nothing that happened.
func TestARefusedConnectionIsUnavailable(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	u, err := url.Parse(h.URL)
	check(t, err)
	u.Host, u.RawQuery = deaf(t), ""
	pool, err := pgxpool.New(t.Context(), u.String())
	check(t, err)
	t.Cleanup(pool.Close)
	db := txn.New(pool, txn.Settings{})
	for _, f := range forms {
		c := h.create(t, "Bakery")
		begun := time.Now()
		c.run(t.Context(), db, f).mustFail(t, domain.CodeUnavailable)
		mustBeQuick(t, begun)
		c.mustHaveTried(t, 0)
	}
	for name, read := range reads {
		if _, err := read(t.Context(), db, h.list); code(err) != domain.CodeUnavailable {
			t.Errorf("%s: got %v, want UNAVAILABLE", name, err)
		}
	}

	proxy, db := h.behind(t, txn.Settings{})
	_, err = txn.Read(t.Context(), db, h.list) // one connection in the pool
	check(t, err)
	proxy.Refuse(true)
	proxy.CutAll()
	c := h.create(t, "Bakery")
	c.run(t.Context(), db, inTransaction).mustFail(t, domain.CodeUnavailable)
	proxy.Refuse(false)
	c.mustBeOwn(t, h, c.run(t.Context(), db, inTransaction), 1)
}

// A text that PostgreSQL cannot store is the client's to mend.
func TestAnUnstorableTextIsBadInput(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	db := h.db(t, txn.Settings{})
	for _, f := range forms {
		for _, name := range []string{"Bak\x00ery", "Bak\xffery"} {
			c := h.create(t, name)
			c.run(t.Context(), db, f).mustFail(t, domain.CodeBadInput)
			c.mustHaveTried(t, 1)
		}
	}
	h.mustHave(t, 0)
}

// occupy takes the only connection of a pool.
func occupy(t *testing.T, pool *pgxpool.Pool) (leave func()) {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	check(t, err)
	return conn.Release
}

// deaf is an address at which nobody listens.
func deaf(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	check(t, listener.Close())
	return listener.Addr().String()
}

// mustBeQuick checks that nobody waited for the write's deadline of ten seconds.
func mustBeQuick(t *testing.T, begun time.Time) {
	t.Helper()
	if took := time.Since(begun); took > 4*time.Second {
		t.Errorf("it took %v", took)
	}
}
