// Package database connects to PostgreSQL: it opens the pool that the server works with, refuses
// a configuration that would break a promise, and brings the schema up to date.
package database

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// RuntimeRole is the role that the server works as. It owns nothing, and it can neither update
// nor delete what only grows.
const RuntimeRole = "countersign_runtime"

// oldest is the first PostgreSQL that has all that the queries use.
const oldest = 140000

// Options of a pool.
type Options struct {
	MaxConns int32                        // 0: pgxpool's default
	Tune     func(config *pgxpool.Config) // the last word on the pool's configuration, for tests
}

// Open makes a pool on a migrated database, after it has checked that what the server promises
// can be kept there. Each error is one line that says what to change.
func Open(ctx context.Context, url string, o Options) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errors.New("DATABASE_URL is no PostgreSQL URL") // the library's own text may hold the password
	}
	if o.MaxConns > 0 {
		config.MaxConns = o.MaxConns
	}
	if config.ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol {
		return nil, errors.New("DATABASE_URL asks for the simple protocol, which sends values inside the SQL text: use default_query_exec_mode=exec behind a pooler")
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	found, err := inspect(ctx, config.ConnConfig)
	if err != nil {
		return nil, err
	}
	config.ConnConfig.RuntimeParams["application_name"] = "countersign" // how operators know the pool
	if found.owner {
		// A login that may do everything works as the role that may not.
		config.ConnConfig.RuntimeParams["role"] = RuntimeRole
	}
	if found.pooler && config.ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		// A statement prepared on one of the pooler's sessions is not there on the next one. What a
		// statement looks like may be kept: that is on this side.
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		registerTypes(conn.TypeMap())
		return nil
	}
	if o.Tune != nil {
		o.Tune(config)
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// login is what the database says of the login that the server works with.
type login struct {
	owner  bool // it owns the tables or is a superuser
	pooler bool // between it and the server stands a pooler
}

// inspect connects once, refuses a server or a login that cannot keep the promises, and says what it
// found. It prepares nothing and sets nothing for its session: behind a pooler that is not its own.
func inspect(ctx context.Context, config *pgx.ConnConfig) (found login, err error) {
	conn, err := pgx.ConnectConfig(ctx, config.Copy())
	if err != nil {
		return found, cannotConnect(config, err)
	}
	defer func() { _ = conn.Close(ctx) }()
	var (
		version, process int
		durable          string
		migrated, member bool
		lock, stmt, idle string
		name             string
	)
	err = conn.QueryRow(ctx, `SELECT current_setting('server_version_num')::int, pg_backend_pid(), current_setting('synchronous_commit'),
		to_regclass('invoices') IS NOT NULL,
		EXISTS (SELECT FROM pg_roles WHERE rolname = $1 AND pg_has_role(session_user, oid, 'USAGE')),
		EXISTS (SELECT FROM pg_roles WHERE rolname = session_user AND rolsuper)
			OR EXISTS (SELECT FROM pg_class WHERE oid = to_regclass('invoices') AND pg_has_role(session_user, relowner, 'USAGE')),
		current_setting('lock_timeout'), current_setting('statement_timeout'),
		current_setting('idle_in_transaction_session_timeout'), session_user::text`, pgx.QueryExecModeExec, RuntimeRole).
		Scan(&version, &process, &durable, &migrated, &member, &found.owner, &lock, &stmt, &idle, &name)
	// A pooler tells its client a process of its own invention.
	found.pooler = err == nil && uint32(process) != conn.PgConn().PID()
	switch {
	case err != nil:
		return found, fmt.Errorf("cannot inspect the database: %w", err)
	case version < oldest:
		return found, fmt.Errorf("the database is PostgreSQL %d: Countersign needs %d or newer", version/10000, oldest/10000)
	case durable == "off":
		return found, errors.New("the database has synchronous_commit = off, which loses acknowledged invoices in a crash: set it to on")
	case !migrated:
		return found, errors.New("the database has no Countersign schema: run countersign migrate")
	case found.owner && found.pooler:
		return found, fmt.Errorf("the login %s owns the tables, and cannot work as %s behind a pooler: give DATABASE_URL a login that is a member of it, and DATABASE_DIRECT_URL this one", name, RuntimeRole)
	case found.owner && !mayBecome(ctx, conn), !found.owner && !member:
		return found, noMember(name)
	case lock == "0" || stmt == "0" || idle == "0":
		return found, fmt.Errorf("the login %s has no time-outs in this database: run countersign migrate with DATABASE_URL set to it, or ALTER ROLE %s SET lock_timeout, statement_timeout and idle_in_transaction_session_timeout", name, name)
	}
	return found, nil
}

// mayBecome tries to become the runtime role. Membership does not tell: an owner need not be a
// member, and since PostgreSQL 16 a member may be one that may not become the role.
func mayBecome(ctx context.Context, conn *pgx.Conn) bool {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return false
	}
	defer func() { _ = tx.Rollback(ctx) }()
	_, err = tx.Exec(ctx, "SET LOCAL ROLE "+RuntimeRole)
	return err == nil
}

func noMember(login string) error {
	return fmt.Errorf("the login %s may not act as %s: GRANT %s TO %s, and let it inherit", login, RuntimeRole, RuntimeRole, login)
}

func cannotConnect(config *pgx.ConnConfig, err error) error {
	if strings.Contains(err.Error(), "unsupported startup parameter") { // as PgBouncer says it
		return fmt.Errorf("%s is a pooler, which has no session of its own for migrations: set DATABASE_DIRECT_URL to the database itself", address(config))
	}
	return fmt.Errorf("cannot connect to the database at %s: %w", address(config), oneLine{err})
}

// oneLine is an error whose text has no line breaks: the library tells of every address that it
// tried on a line of its own.
type oneLine struct{ error }

func (e oneLine) Error() string { return strings.Join(strings.Fields(e.error.Error()), " ") }
func (e oneLine) Unwrap() error { return e.error }

func address(config *pgx.ConnConfig) string {
	return fmt.Sprintf("%s:%d/%s", config.Host, config.Port, config.Database)
}
