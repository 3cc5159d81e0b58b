package txn_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"countersign/internal/domain"
	"countersign/internal/testdb"
	"countersign/internal/testdb/pgproxy"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// house is a test's database, with a tenant in it.
type house struct {
	*testdb.DB
	tenant domain.TenantID
	pools  sync.Map // *txn.DB → *pgxpool.Pool
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{DB: testdb.New(t), tenant: domain.NewID[domain.TenantID]()}
	q := sqlc.New(h.Owner(t))
	_, err := q.EveryTenantInsert(t.Context(), sqlc.EveryTenantInsertParams{ID: h.tenant, Handle: "acme", Name: "Acme", CreatedAt: time.Now()})
	check(t, err)
	_, err = q.InsertSeller(t.Context(), sqlc.InsertSellerParams{TenantID: h.tenant, Name: "Acme", UpdatedAt: domain.VersionAt(time.Now())})
	check(t, err)
	return h
}

// db is the database under test, with bounds of its own.
func (h *house) db(t *testing.T, s txn.Settings) *txn.DB { return h.dbAt(t, h.URL, 0, s) }

// dbAt is the database under test through another address and a pool of at most size connections.
func (h *house) dbAt(t *testing.T, at string, size int32, s txn.Settings) *txn.DB {
	t.Helper()
	if size == 0 {
		size = 20
	}
	pool := h.PoolAt(t, at, size)
	db := txn.New(pool, s)
	h.pools.Store(db, pool)
	return db
}

// pool is what a database under test works with.
func (h *house) pool(db *txn.DB) *pgxpool.Pool {
	pool, _ := h.pools.Load(db)
	return pool.(*pgxpool.Pool)
}

// behind is the database under test with a proxy before it.
func (h *house) behind(t *testing.T, s txn.Settings) (*pgproxy.Proxy, *txn.DB) {
	t.Helper()
	proxy := pgproxy.New(t, h.URL)
	return proxy, h.dbAt(t, proxy.URL(), 0, s)
}

// with is the database's URL with run-time parameters: "lock_timeout=100ms".
func (h *house) with(t *testing.T, parameters ...string) string {
	t.Helper()
	u, err := url.Parse(h.URL)
	check(t, err)
	query := u.Query()
	for _, p := range parameters {
		name, value, _ := strings.Cut(p, "=")
		query.Set(name, value)
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// settle closes the pools and returns when the server has worked off whatever they sent.
func (h *house) settle(t *testing.T) {
	t.Helper()
	h.pools.Range(func(_, pool any) bool {
		pool.(*pgxpool.Pool).Close()
		return true
	})
	h.awaitNoBackends(t)
}

// kill terminates every connection of the pools, and returns when the server has done so.
func (h *house) kill(t *testing.T) {
	t.Helper()
	h.Exec(t, "SELECT pg_terminate_backend(pid) "+ofThePools)
	h.awaitNoBackends(t)
}

const ofThePools = "FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'countersign'"

func (h *house) awaitNoBackends(t *testing.T) {
	t.Helper()
	conn := h.Owner(t)
	testdb.Eventually(t, func() bool {
		var n int
		err := conn.QueryRow(context.Background(), "SELECT count(*) "+ofThePools).Scan(&n)
		return err == nil && n == 0
	})
}

// customers is how many customers there are, whoever made them.
func (h *house) customers(t *testing.T) int {
	t.Helper()
	return testdb.Scan[int](t, h.DB, "SELECT count(*) FROM customers")
}

// mustHave checks how many customers there are.
func (h *house) mustHave(t *testing.T, want int) {
	t.Helper()
	if got := h.customers(t); got != want {
		t.Errorf("there are %d customers, want %d", got, want)
	}
}

// raise gives customers the triggers that obey a demand.
func (h *house) raise(t *testing.T) {
	t.Helper()
	h.Exec(t, `
		CREATE FUNCTION obey() RETURNS trigger LANGUAGE plpgsql AS $$
		DECLARE
			demand text[] := string_to_array(NEW.name, ' ');
			attempt int := split_part(NEW.email, '@', 2);
		BEGIN
			IF demand[1] = 'raise' AND demand[2] = TG_NAME AND attempt BETWEEN demand[3]::int AND demand[4]::int THEN
				RAISE EXCEPTION 'raised by the test' USING ERRCODE = demand[5], CONSTRAINT = coalesce(demand[6], '');
			END IF;
			RETURN NULL;
		END $$;
		CREATE CONSTRAINT TRIGGER at_statement AFTER INSERT ON customers NOT DEFERRABLE
			FOR EACH ROW EXECUTE FUNCTION obey();
		CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON customers DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW EXECUTE FUNCTION obey();`)
}

// where is the moment at which a demand is met.
type where string

const (
	atStatement where = "at_statement"
	atCommit    where = "at_commit"
)

// demand is a customer's name that has the database raise an SQLSTATE, in the attempts from first
// to last; the violated constraint may be named behind the code.
func demand(at where, first, last int, code string) string {
	return fmt.Sprintf("raise %s %d %d %s", at, first, last, code)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
