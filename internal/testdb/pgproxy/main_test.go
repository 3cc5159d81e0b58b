package pgproxy_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"countersign/internal/localpg"
)

var (
	server string        // the URL of the PostgreSQL that all tests of the package share
	direct *pgxpool.Pool // connections to it that bypass every proxy
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "pgproxy")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	// PostgreSQL may run as another user, which must reach its files all the same.
	if err := os.Chmod(dir, 0o755); err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	pg, err := localpg.Start(ctx, localpg.Config{
		DataDir:  filepath.Join(dir, "pg"),
		Settings: map[string]string{"fsync": "off", "max_connections": "300"},
	})
	if err != nil {
		panic(err)
	}
	defer func() { _ = pg.Close() }()
	server = pg.URL()
	if err := prepare(ctx); err != nil {
		panic(err)
	}
	if direct, err = pgxpool.New(ctx, server); err != nil {
		panic(err)
	}
	defer direct.Close()
	return m.Run()
}

// prepare makes the table of the tests, and a role that must give a password, for
// the longer startup that comes with it.
func prepare(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, `CREATE TABLE rows (id int PRIMARY KEY);
		CREATE ROLE with_password LOGIN PASSWORD 'secret'; GRANT ALL ON rows TO with_password`)
	if err != nil {
		return err
	}
	var hba string
	if err := conn.QueryRow(ctx, "SHOW hba_file").Scan(&hba); err != nil {
		return err
	}
	rules, err := os.ReadFile(hba)
	if err != nil {
		return err
	}
	rules = append([]byte("local all with_password scram-sha-256\n"), rules...)
	if err := os.WriteFile(hba, rules, 0o600); err != nil { // keeps its owner
		return err
	}
	if _, err := conn.Exec(ctx, "SELECT pg_reload_conf()"); err != nil {
		return err
	}
	// The reload takes effect a moment later: when the role is let in no more.
	config, err := pgx.ParseConfig(server)
	if err != nil {
		return err
	}
	config.User = "with_password"
	for ctx.Err() == nil {
		again, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return ctx.Err()
		}
		_ = again.Close(ctx)
	}
	return ctx.Err()
}
