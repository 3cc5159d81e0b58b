// Package jobs runs what has to be done from time to time, on whichever replica: River keeps one
// leader among them, and its jobs in the database.
package jobs

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"

	"countersign/internal/metering"
	"countersign/internal/ordering"
)

// Schema is where River's tables live.
const Schema = "ops"

// Runner runs the jobs until it is stopped.
type Runner struct{ client *river.Client[pgx.Tx] }

// reconcileArgs is the job that settles pending orders.
type reconcileArgs struct{}

// Kind names the job.
func (reconcileArgs) Kind() string { return "reconcile" }

// InsertOpts keeps one of it at a time.
func (reconcileArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByArgs: true, ByPeriod: time.Second}}
}

type reconcileWorker struct {
	river.WorkerDefaults[reconcileArgs]
	ordering *ordering.Service
	minAge   time.Duration
	logger   *slog.Logger
}

// Work reconciles once. What fails is tried again by the next job.
func (w *reconcileWorker) Work(ctx context.Context, _ *river.Job[reconcileArgs]) error {
	done, err := w.ordering.Reconcile(ctx, w.minAge)
	if done != (ordering.Reconciled{}) {
		w.logger.InfoContext(ctx, "reconciled", slog.Any("done", done))
	}
	return err
}

// Timeout bounds one run.
func (*reconcileWorker) Timeout(*river.Job[reconcileArgs]) time.Duration { return 10 * time.Minute }

// settleArgs is the job that finishes what crashes have left of revocations.
type settleArgs struct{}

// Kind names the job.
func (settleArgs) Kind() string { return "settle" }

// InsertOpts keeps one of it at a time.
func (settleArgs) InsertOpts() river.InsertOpts { return reconcileArgs{}.InsertOpts() }

type settleWorker struct {
	river.WorkerDefaults[settleArgs]
	metering *metering.Service
	minAge   time.Duration
	logger   *slog.Logger
}

// Work settles once. What fails is tried again by the next job.
func (w *settleWorker) Work(ctx context.Context, _ *river.Job[settleArgs]) error {
	done, err := w.metering.Settle(ctx, w.minAge)
	if done != (metering.Settled{}) {
		w.logger.InfoContext(ctx, "settled", slog.Any("done", done))
	}
	return err
}

// Timeout bounds one run.
func (*settleWorker) Timeout(*river.Job[settleArgs]) time.Duration { return 10 * time.Minute }

// Observe is told how each run of a job ended, and how long it took. May be nil.
type Observe func(kind string, err error, took time.Duration)

// Start begins to run the jobs: what is still unknown after the interval is looked at once an
// interval.
func Start(ctx context.Context, pool *pgxpool.Pool, o *ordering.Service, m *metering.Service, every time.Duration, logger *slog.Logger, observe Observe) (*Runner, error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &reconcileWorker{ordering: o, minAge: every, logger: logger})
	river.AddWorker(workers, &settleWorker{metering: m, minAge: every, logger: logger})
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Schema:            Schema,
		Logger:            slog.New(warnings{logger.Handler()}),
		Workers:           workers,
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 2}},
		Middleware:        []rivertype.Middleware{observed(observe)},
		PollOnly:          true, // LISTEN needs a session of its own, which a pooler does not give
		PeriodicJobs:      []*river.PeriodicJob{periodic(every, reconcileArgs{}), periodic(every, settleArgs{})},
		FetchPollInterval: time.Second,
		ReindexerSchedule: never{}, // reindexing needs the tables' owner
	})
	if err != nil {
		return nil, err
	}
	return &Runner{client}, client.Start(ctx)
}

// observed tells of each job that was run.
func observed(observe Observe) rivertype.Middleware {
	return river.WorkerMiddlewareFunc(func(ctx context.Context, job *rivertype.JobRow, inner func(context.Context) error) error {
		start := time.Now()
		err := inner(ctx)
		if observe != nil {
			observe(job.Kind, err, time.Since(start))
		}
		return err
	})
}

func periodic(every time.Duration, args river.JobArgs) *river.PeriodicJob {
	return river.NewPeriodicJob(river.PeriodicInterval(every),
		func() (river.JobArgs, *river.InsertOpts) { return args, nil }, &river.PeriodicJobOpts{RunOnStart: true})
}

// Stop lets the jobs at work finish.
func (r *Runner) Stop(ctx context.Context) error { return r.client.Stop(ctx) }

// never is a schedule that does not come.
type never struct{}

// Next is beyond anybody's patience.
func (never) Next(now time.Time) time.Time { return now.AddDate(1000, 0, 0) }

// warnings is a log handler that leaves out what River says every few seconds.
type warnings struct{ slog.Handler }

// Enabled lets warnings through.
func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && w.Handler.Enabled(ctx, level)
}
