// Package command holds what the commands of the binary do.
package command

import (
	"context"
	"io"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"countersign/internal/accesslog"
	"countersign/internal/auth"
	"countersign/internal/config"
	"countersign/internal/database"
	"countersign/internal/invoicing"
	"countersign/internal/localpg"
	"countersign/internal/metering"
	"countersign/internal/metrics"
	"countersign/internal/ordering"
	"countersign/internal/payment"
	"countersign/internal/requestid"
	"countersign/internal/txn"
)

// World is what a command may touch beside the database.
type World struct {
	Config         config.Config
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Logger         *slog.Logger
}

// NewLogger logs as the environment wants it: text for people, JSON for machines. A line that is
// written under a request says which, and who calls.
func NewLogger(c config.Config, w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: c.LogLevel}
	var lines slog.Handler = slog.NewTextHandler(w, options)
	if c.Env == config.Production {
		lines = slog.NewJSONHandler(w, options)
	}
	return slog.New(accesslog.LogHandler{Handler: requestid.LogHandler{Handler: lines}})
}

// App is the product on a database: what the wire and the commands call.
type App struct {
	Pool      *pgxpool.Pool
	DB        *txn.DB
	Tokens    *auth.Tokens
	Invoicing *invoicing.Service
	Ordering  *ordering.Service
	Metering  *metering.Service
	Provider  payment.Provider
	Metrics   *metrics.Metrics

	local *localpg.Server
}

// Close leaves the database. A PostgreSQL of our own that nobody uses any more has stopped when it
// returns.
func (a *App) Close() error {
	if a.Pool != nil {
		a.Pool.Close()
	}
	if a.local != nil {
		return a.local.Close()
	}
	return nil
}

// Connect opens the database. It migrates it first if told to, and always where the database is
// our own: there is nobody else to do it.
func Connect(ctx context.Context, w *World, migrate bool) (app *App, err error) {
	app = &App{Metrics: metrics.New()}
	defer func() {
		if err != nil {
			_ = app.Close()
		}
	}()
	url, direct := w.Config.DatabaseURL, w.Config.DatabaseDirectURL
	if url == "" {
		app.local, err = localpg.Start(ctx, localpg.Config{DataDir: w.Config.DataDir, BinDir: w.Config.PostgresBin, Logger: w.Logger})
		if err != nil {
			return app, err
		}
		url, migrate = app.local.URL(), true
	}
	if direct == "" {
		direct = url
	}
	if migrate {
		if err := Migrate(ctx, w, url, direct); err != nil {
			return app, err
		}
	}
	app.Pool, err = database.Open(ctx, url, database.Options{MaxConns: w.Config.MaxConns})
	if err != nil {
		return app, err
	}
	app.DB = txn.New(app.Pool, txn.Settings{
		AcquireTimeout: w.Config.AcquireTimeout, WriteTimeout: w.Config.MutationTimeout, Logger: w.Logger,
		Observe: app.Metrics.Transaction,
	})
	app.Tokens, app.Invoicing = auth.NewTokens(app.DB), invoicing.New(app.DB).WithJoining(invoicing.Joining{
		Batch: w.Config.AllocationBatch, Queue: w.Config.AllocationQueue,
	})
	app.Metrics.Pool(app.Pool)
	app.Metrics.Queue("access_tokens", app.Tokens.Waiting)
	app.Metrics.Queue("allocations", app.Invoicing.Waiting)
	app.Provider = payment.NewSimulated(app.DB, w.Config.SimulatedDelay, w.Config.WebhookSecrets)
	app.Ordering, app.Metering = ordering.New(app.DB, app.Provider).WithInvoices(metering.ApplyFact), metering.New(app.DB)
	return app, nil
}

// Migrate brings the database up to date through its direct URL, for the login of the other.
func Migrate(ctx context.Context, w *World, url, direct string) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return errURL
	}
	applied, err := database.Migrate(ctx, direct, config.User, w.Logger)
	if applied > 0 {
		w.Logger.InfoContext(ctx, "database migrated", slog.Int("migrations", applied))
	}
	return err
}
