package database

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"countersign/internal/jobs"
)

// upRiver brings the tables of the jobs up to date, as their owner, and lets the server use them.
// It runs with the product's own migrations, under their lock: a new version of River that changes
// its tables comes with a migration of ours, be it an empty one, that makes it run.
func upRiver(ctx context.Context, config *pgx.ConnConfig) error {
	poolConfig, err := pgxpool.ParseConfig("")
	if err != nil {
		return err
	}
	poolConfig.ConnConfig, poolConfig.MaxConns = config.Copy(), 1
	pool, err := pgxpool.NewWithConfig(ctx, poolConfig)
	if err != nil {
		return err
	}
	defer pool.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Schema: jobs.Schema})
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("migration of the jobs failed: %w", err)
	}
	_, err = pool.Exec(ctx, grantRiver)
	return err
}

// grantRiver gives the runtime role what River's tables need; their versions are their owner's.
const grantRiver = `DO $$
DECLARE name text;
BEGIN
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'ops' AND tablename LIKE 'river\_%' AND tablename <> 'river_migration' LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON ops.%I TO ` + RuntimeRole + `', name);
    END LOOP;
    FOR name IN SELECT sequencename FROM pg_sequences WHERE schemaname = 'ops' AND sequencename LIKE 'river\_%' LOOP
        EXECUTE format('GRANT USAGE ON SEQUENCE ops.%I TO ` + RuntimeRole + `', name);
    END LOOP;
END $$`
