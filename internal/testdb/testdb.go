// Package testdb gives every test a database of its own, on the engine that production uses: a
// clone of a migrated template. It forces races too: gates hold connections at a named query, and
// a rewriting querier runs a query without its guard.
package testdb

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"countersign/internal/database"
	"countersign/internal/localpg"
	"countersign/migrations"
)

// DB is a test's database.
type DB struct {
	// URL logs in as the owner of everything, as a login that works as the runtime role.
	URL  string
	Pool *pgxpool.Pool // as the server works: in the runtime role
	Name string

	tracer *tracer
}

// server is the test server of this process, shared with all others that test at the moment.
var server = sync.OnceValues(func() (*localpg.Server, error) {
	dir := fmt.Sprintf("countersign-test-%d", os.Getuid())
	if bin := os.Getenv("COUNTERSIGN_POSTGRES_BIN"); bin != "" {
		dir += "-" + digest(bin)
	}
	return localpg.Start(context.Background(), localpg.Config{
		DataDir: filepath.Join(os.TempDir(), dir),
		// No test cuts the power, so nothing need reach the disk. COMMIT still waits for the log.
		Settings: map[string]string{"fsync": "off", "full_page_writes": "off", "max_connections": "400", "shared_buffers": "256MB"},
	})
})

var started atomic.Bool

// Main runs a package's tests, and once more after each turn, and leaves the server; the last
// package to leave stops it.
//
//	func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }
func Main(m *testing.M, turns ...func()) int {
	code := m.Run()
	for _, turn := range turns {
		turn()
		code = max(code, m.Run())
	}
	if started.Load() {
		if s, err := server(); err == nil {
			_ = s.Close()
		}
	}
	return code
}

var template = sync.OnceValues(makeTemplate)

var serial atomic.Int64

// New makes a database for a test and drops it at the test's end.
func New(t testing.TB) *DB {
	t.Helper()
	started.Store(true)
	from, err := template()
	if err != nil {
		t.Fatalf("no test database: %v", err)
	}
	d := create(t, " TEMPLATE "+from)
	d.Pool = d.NewPool(t, 0)
	return d
}

// Empty is New without a schema, and so without a pool.
func Empty(t testing.TB) *DB {
	t.Helper()
	started.Store(true)
	return create(t, "")
}

func create(t testing.TB, how string) *DB {
	t.Helper()
	d := &DB{Name: fmt.Sprintf("t_%d_%d", os.Getpid(), serial.Add(1)), tracer: newTracer()}
	if err := admin("CREATE DATABASE " + d.Name + how); err != nil {
		t.Fatalf("no test database: %v", err)
	}
	t.Cleanup(func() {
		if err := admin("DROP DATABASE " + d.Name + " WITH (FORCE)"); err != nil {
			t.Errorf("cannot drop the test database: %v", err)
		}
	})
	s, _ := server()
	d.URL = s.DatabaseURL(d.Name)
	return d
}

// NewPool makes another pool on the database, as another server would have, of at most size
// connections (0: enough for any test). Its queries pass the database's gates.
func (d *DB) NewPool(t testing.TB, size int32) *pgxpool.Pool {
	t.Helper()
	if size == 0 {
		size = 20
	}
	return d.PoolAt(t, d.URL, size)
}

// PoolAt is NewPool through another address of the same database, such as a proxy's.
func (d *DB) PoolAt(t testing.TB, url string, size int32) *pgxpool.Pool {
	t.Helper()
	pool, err := database.Open(context.Background(), url, database.Options{MaxConns: size, Tune: func(c *pgxpool.Config) {
		c.ConnConfig.Tracer = d.tracer
	}})
	if err != nil {
		t.Fatalf("no pool: %v", err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// Owner is a connection that may do everything, to damage and to look.
func (d *DB) Owner(t testing.TB) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), d.URL)
	if err != nil {
		t.Fatalf("no connection: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// Exec runs statements as the owner.
func (d *DB) Exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	conn := d.Owner(t)
	if _, err := conn.Exec(context.Background(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// Scan reads one value as the owner.
func Scan[T any](t testing.TB, d *DB, sql string, args ...any) (value T) {
	t.Helper()
	conn := d.Owner(t)
	if err := conn.QueryRow(context.Background(), sql, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

// admin runs a statement on the server's own database.
func admin(sql string) error {
	conn, err := connect("postgres")
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.Background()) }()
	_, err = conn.Exec(context.Background(), sql)
	return err
}

func connect(name string) (*pgx.Conn, error) {
	s, err := server()
	if err != nil {
		return nil, err
	}
	config, err := pgx.ParseConfig(s.DatabaseURL(name))
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["statement_timeout"], config.RuntimeParams["lock_timeout"] = "0", "0"
	return pgx.ConnectConfig(context.Background(), config)
}

// makeTemplate migrates a database once for each state of the migrations; processes that test at
// once make it together.
func makeTemplate() (string, error) {
	ctx := context.Background()
	conn, err := connect("postgres")
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(ctx) }()
	settings := slices.Concat(database.Timeouts, database.Planning)
	name := "template_" + digest(migrationsText()+strings.Join(settings, ";"))
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock(1)"); err != nil { // released with the connection
		return "", err
	}
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&exists); err != nil || exists {
		return name, err
	}
	draft := name + "_draft"
	for _, sql := range []string{"DROP DATABASE IF EXISTS " + draft + " WITH (FORCE)", "CREATE DATABASE " + draft} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return "", err
		}
	}
	// A clone has none of its template's settings per database, so the login has them everywhere.
	for _, setting := range settings {
		if _, err := conn.Exec(ctx, "ALTER ROLE "+conn.Config().User+" SET "+setting); err != nil {
			return "", err
		}
	}
	s, _ := server()
	if _, err := database.Migrate(ctx, s.DatabaseURL(draft), conn.Config().User, slog.New(slog.DiscardHandler)); err != nil {
		return "", err
	}
	_, err = conn.Exec(ctx, "ALTER DATABASE "+draft+" RENAME TO "+name)
	return name, err
}

func migrationsText() string {
	var text strings.Builder
	names, _ := fs.Glob(migrations.Files, "*.sql")
	for _, name := range names {
		content, _ := migrations.Files.ReadFile(name)
		text.Write(content)
	}
	return text.String()
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:6])
}
