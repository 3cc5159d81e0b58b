package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"countersign/migrations"
)

// versions is where goose keeps which migrations have run.
const versions = "ops.goose_db_version"

// migrationLock is the advisory lock that replicas starting together queue at: "csgn".
const migrationLock = 0x6373676e

// Timeouts are set on the server's login, so that no start-up parameter is needed, which poolers
// drop: a server that is frozen inside a transaction must not hold a counter.
var Timeouts = []string{
	"lock_timeout = '4s'",
	"statement_timeout = '8s'",
	"idle_in_transaction_session_timeout = '8s'",
}

// Planning is set on the server's login too. A plan is made once and kept, a foreign key's check
// included; made while a table is tiny it reads the whole table, and goes on to do so while the
// table grows: of 2,000 invoices a second, until the next ANALYZE, 90 % of the time went there.
// Every query has its index, so nothing is lost; reports turn it on again. Without it a query
// without an index is estimated so dear that it would be compiled, which takes longer than to run
// it. And a statement over arrays looks cheaper where their length is known, one element as a
// rule, so that its plan would be made anew each time: most of the time of a number that is asked
// for alone. No query of the server needs to know its arguments to be planned well.
var Planning = []string{
	"enable_seqscan = 'off'",
	"jit = 'off'",
	"plan_cache_mode = 'force_generic_plan'",
}

// settings are all that is set on the server's login, by name.
var settings = func() map[string]string {
	byName := map[string]string{}
	for _, setting := range slices.Concat(Timeouts, Planning) {
		byName[nameOf(setting)] = setting
	}
	return byName
}()

// nameOf is the name of a setting that is written "name = value".
func nameOf(setting string) string {
	name, _, _ := strings.Cut(setting, " ")
	return name
}

// Migrate brings the database at url (the owner's) up to date and sets time-outs and planning on
// login, the role that the server logs in as, where it has none of its own. Any number of replicas may call it at
// once: one migrates, the others wait. It returns how many migrations it ran.
func Migrate(ctx context.Context, url, login string, logger *slog.Logger) (applied int, err error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return 0, errors.New("the database's URL is no PostgreSQL URL")
	}
	// The time-outs of requests are not those of migrations.
	for _, timeout := range Timeouts {
		config.RuntimeParams[nameOf(timeout)] = "0"
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return 0, cannotConnect(config, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()

	if done, err := current(ctx, conn, login); done || err != nil {
		return 0, err
	}
	err = locked(ctx, conn, func() (err error) {
		db := stdlib.OpenDB(*config)
		defer func() { _ = db.Close() }()
		if applied, err = up(ctx, db, config, logger); err != nil {
			return err
		}
		missing, err := unset(ctx, conn, login)
		if err != nil {
			return err
		}
		return set(ctx, db, config.Database, login, missing)
	})
	return applied, err
}

// up runs what is pending. River's migrations come before our last one: until that is recorded the
// database is pending, so that what broke off anywhere is run again, theirs included.
func up(ctx context.Context, db *sql.DB, config *pgx.ConnConfig, logger *slog.Logger) (int, error) {
	if _, err := db.ExecContext(ctx, "CREATE SCHEMA IF NOT EXISTS ops"); err != nil {
		return 0, fmt.Errorf("cannot create the schema ops: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations.Files,
		goose.WithTableName(versions), goose.WithSlog(logger), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return 0, err
	}
	before, err := provider.UpTo(ctx, latest-1)
	if err != nil {
		return len(before), fmt.Errorf("migration failed: %w", err)
	}
	if err := upRiver(ctx, config); err != nil {
		return len(before), err
	}
	last, err := provider.Up(ctx)
	applied := len(before) + len(last)
	if err != nil {
		return applied, fmt.Errorf("migration failed: %w", err)
	}
	_, err = db.ExecContext(ctx, "GRANT SELECT ON "+versions+" TO "+RuntimeRole)
	return applied, err
}

// locked runs fn while this connection's transaction holds the migration lock. The lock is tried
// for, never waited for: a session that waits inside a transaction behind a pooler can starve the
// one that holds it.
func locked(ctx context.Context, conn *pgx.Conn, fn func() error) error {
	for {
		tx, err := conn.Begin(ctx)
		if err != nil {
			return err
		}
		var mine bool
		err = tx.QueryRow(ctx, "SELECT pg_try_advisory_xact_lock($1)", migrationLock).Scan(&mine)
		if err == nil && mine {
			err = fn()
		}
		_ = tx.Rollback(context.WithoutCancel(ctx))
		if err != nil || mine {
			return err
		}
		select {
		case <-time.After(30 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// querier is a connection or a pool.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// current says whether there is nothing to do for a login. It only reads.
func current(ctx context.Context, conn *pgx.Conn, login string) (bool, error) {
	pending, err := Pending(ctx, conn)
	if e := (*pgconn.PgError)(nil); errors.As(err, &e) && e.Code == pgerrcode.InsufficientPrivilege {
		return false, noMember(conn.Config().User)
	}
	if pending || err != nil {
		return false, err
	}
	missing, err := unset(ctx, conn, login)
	return len(missing) == 0, err
}

// unset are the settings that a login does not have in this database, by whichever ALTER ROLE or
// ALTER DATABASE: an operator's own are left alone. It only reads.
func unset(ctx context.Context, db querier, login string) (missing []string, err error) {
	err = db.QueryRow(ctx, `SELECT ARRAY(SELECT name FROM unnest($2::text[]) AS wanted (name)
			WHERE NOT EXISTS (
				SELECT FROM pg_db_role_setting s, unnest(s.setconfig) AS setting
				WHERE s.setrole IN (r.oid, 0) AND s.setdatabase IN ((SELECT oid FROM pg_database WHERE datname = current_database()), 0)
				  AND starts_with(setting, wanted.name || '=')))
		FROM pg_roles r WHERE r.rolname = $1`, login, slices.Sorted(maps.Keys(settings))).Scan(&missing)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("the database has no login %s", login)
	}
	return missing, err
}

// Pending says whether migrations are to be run. It only reads.
func Pending(ctx context.Context, db querier) (bool, error) {
	var known bool
	if err := db.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", versions).Scan(&known); err != nil {
		return false, fmt.Errorf("cannot read the schema's version: %w", err)
	}
	if !known {
		return true, nil
	}
	var version int64
	if err := db.QueryRow(ctx, "SELECT coalesce(max(version_id), 0) FROM "+versions+" WHERE is_applied").Scan(&version); err != nil {
		return false, fmt.Errorf("cannot read the schema's version: %w", err)
	}
	return version < latest, nil
}

// latest is the newest migration of this build.
var latest = func() (newest int64) {
	files, err := migrations.Files.ReadDir(".")
	if err != nil {
		panic(err) // the files are part of the binary
	}
	for _, file := range files {
		if version, err := goose.NumericComponent(file.Name()); err == nil {
			newest = max(newest, version)
		}
	}
	return newest
}()

// set gives the server's login settings in a database.
func set(ctx context.Context, db *sql.DB, database, login string, names []string) error {
	where := "ALTER ROLE " + pgx.Identifier{login}.Sanitize() + " IN DATABASE " + pgx.Identifier{database}.Sanitize()
	for _, name := range names {
		if _, err := db.ExecContext(ctx, where+" SET "+settings[name]); err != nil {
			return fmt.Errorf("cannot set %s of the login %s: %w", name, login, err)
		}
	}
	return nil
}
