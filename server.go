// Countersign is a billing server: it numbers invoices, takes orders and bills API usage over
// GraphQL, on nothing but PostgreSQL.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"countersign/graph"
	"countersign/internal/auth"
	"countersign/internal/command"
	"countersign/internal/config"
	"countersign/internal/database"
	"countersign/internal/demo"
	"countersign/internal/domain"
	"countersign/internal/httpserver"
	"countersign/internal/jobs"
	"countersign/internal/ordering"
	"countersign/internal/ratelimit"
	"countersign/web"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "countersign:", err)
		os.Exit(1)
	}
}

// cli is the grammar of the command line.
type cli struct {
	Serve      serveCmd              `cmd:"" default:"1" help:"Serve the API (the default)."`
	Migrate    command.MigrateCmd    `cmd:"" help:"Bring the database's schema up to date."`
	Seed       command.SeedCmd       `cmd:"" help:"Make the tenant demo with its data. Prints its ids."`
	Tenant     command.TenantCmd     `cmd:"" help:"Tenants."`
	Token      command.TokenCmd      `cmd:"" help:"Access tokens."`
	Reconcile  command.ReconcileCmd  `cmd:"" help:"Settle every payment whose outcome is not known, whatever its age, once."`
	Settle     command.SettleCmd     `cmd:"" help:"Finish every revocation, settlement and waive that a crash has left, once."`
	Series     command.SeriesCmd     `cmd:"" help:"Series of numbers: list them, audit their ledgers, import numbers, resync a counter."`
	CloseMonth command.CloseMonthCmd `cmd:"" help:"Close a month: settle its usage, make its invoices final, number them."`
	Doctor     command.DoctorCmd     `cmd:"" help:"Check every invariant of the data, on a live database. Exit status 1 and a line for each violation."`
	Schema     schemaCmd             `cmd:"" help:"Print the GraphQL schema."`
	Version    versionCmd            `cmd:"" help:"Print the version."`
}

// run is the program as a value: tests run it too.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	exit := -1
	parser, err := kong.New(&cli{}, kong.Name("countersign"), kong.Writers(stdout, stderr),
		kong.Description("A billing server over PostgreSQL.\n\nConfiguration by environment:\n\n"+config.Describe()),
		kong.Exit(func(code int) { exit = code }), kong.UsageOnError(), kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 110}))
	if err != nil {
		return err
	}
	parsed, err := parser.Parse(args)
	if exit >= 0 { // --help has been printed
		return nil
	}
	if err != nil {
		return err
	}
	c, err := config.Load(environ)
	if err != nil {
		return err
	}
	world := &command.World{Config: c, Stdin: os.Stdin, Stdout: stdout, Stderr: stderr, Logger: command.NewLogger(c, stderr)}
	parsed.BindTo(ctx, (*context.Context)(nil))
	return parsed.Run(world)
}

type schemaCmd struct{}

// Run prints the SDL.
func (schemaCmd) Run(w *command.World) error {
	_, err := io.WriteString(w.Stdout, graph.SDL())
	return err
}

type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run(w *command.World) error {
	_, err := fmt.Fprintln(w.Stdout, version())
	return err
}

// version is the build's, as the Go toolchain stamped it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

type serveCmd struct{}

// Run serves until ctx ends.
func (serveCmd) Run(ctx context.Context, w *command.World) (err error) {
	command.CollectSeldom()
	listener, err := net.Listen("tcp", w.Config.ListenAddr)
	if err != nil {
		return fmt.Errorf("LISTEN_ADDR: %w", err)
	}
	defer func() { _ = listener.Close() }()
	app, err := command.Connect(ctx, w, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, app.Close()) }()

	limits := graph.DefaultLimits()
	limits.Cost, limits.MutationFields, limits.RootFields = w.Config.MaxCost, w.Config.MaxMutations, w.Config.MaxRootFields
	limits.Aliases, limits.Depth = w.Config.MaxAliases, w.Config.MaxDepth
	server := &httpserver.Server{
		GraphQL: graph.NewHandler(graph.Options{
			Resolver:     &graph.Resolver{DB: app.DB, Tokens: app.Tokens, Invoicing: app.Invoicing, Ordering: app.Ordering, Metering: app.Metering},
			Authenticate: callers(ctx, w, app).Authenticate, Explore: w.Config.Env == config.Development, Logger: w.Logger,
			Limits: &limits, Rates: rates(w.Config), QueryTimeout: w.Config.QueryTimeout, Observe: app.Metrics.Field,
		}),
		Origins: w.Config.CORSOrigins, Observe: app.Metrics.Request,
		Webhooks: map[string]http.Handler{app.Provider.Name(): ordering.Webhook(app.Ordering, w.Logger)},
		Ready: func(ctx context.Context) error {
			pending, err := database.Pending(ctx, app.Pool)
			if err == nil && pending {
				err = errors.New("the schema is older than this server")
			}
			return err
		},
		Logger: w.Logger, DrainDelay: w.Config.DrainDelay, Timeout: w.Config.ShutdownTimeout,
		HeaderTimeout: w.Config.HeaderTimeout, ReadTimeout: w.Config.ReadTimeout,
	}
	if err := serveMetrics(ctx, w, app, server); err != nil {
		return err
	}
	address := "http://" + listener.Addr().String()
	if _, err := fmt.Fprintf(w.Stdout, "Countersign %s serves %s/graphql\n", version(), address); err != nil {
		return err
	}
	if w.Config.Env == config.Development {
		if server.Playground, err = playground(ctx, w, app, address); err != nil {
			return err
		}
	}
	// The jobs run on while requests drain, and stop before the pool closes.
	runner, err := jobs.Start(context.WithoutCancel(ctx), app.Pool, app.Ordering, app.Metering, w.Config.ReconcileInterval, w.Logger, app.Metrics.Job)
	if err != nil {
		return err
	}
	defer func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.Config.ShutdownTimeout)
		defer cancel()
		err = errors.Join(err, runner.Stop(grace))
	}()
	return server.Serve(ctx, listener)
}

// callers recognises access tokens and, where an issuer is configured, its JWTs.
func callers(ctx context.Context, w *command.World, app *command.App) auth.Authenticator {
	a := auth.Authenticator{Tokens: app.Tokens}
	if s, on := w.Config.JWT(); on {
		a.JWTs = auth.NewJWTs(ctx, app.DB, s, w.Logger)
		app.Metrics.Queue("jwts", a.JWTs.Waiting)
	}
	return a
}

// rates are how often callers and addresses may ask.
func rates(c config.Config) graph.Rates {
	return graph.Rates{
		Callers:  ratelimit.New(ratelimit.Policy{Name: "caller", PerSecond: c.RateLimit, Burst: c.RateBurst}, time.Now),
		Failures: ratelimit.New(ratelimit.Policy{Name: "failures", PerSecond: c.FailedAuthLimit, Burst: c.FailedAuthBurst}, time.Now),
		Proxies:  c.Proxies(),
	}
}

// serveMetrics serves /metrics where the configuration says: here, on a listener of its own, or
// nowhere.
func serveMetrics(ctx context.Context, w *command.World, app *command.App, server *httpserver.Server) error {
	switch where := w.Config.Metrics(); where {
	case config.MetricsNone:
	case config.MetricsMain:
		server.Metrics = app.Metrics.Handler()
	default:
		listener, err := net.Listen("tcp", where)
		if err != nil {
			return fmt.Errorf("COUNTERSIGN_METRICS_ADDR: %w", err)
		}
		w.Logger.InfoContext(ctx, "metrics", slog.String("url", "http://"+listener.Addr().String()+"/metrics"))
		go httpserver.ServeMetrics(ctx, listener, app.Metrics.Handler(), w.Logger)
	}
	return nil
}

// playground makes the demo tenant and a token of it, says so, and serves a page to explore with.
func playground(ctx context.Context, w *command.World, app *command.App, address string) (http.Handler, error) {
	d, err := demo.Seed(ctx, app.DB, app.Invoicing, app.Ordering, app.Metering, app.Provider)
	if err != nil {
		return nil, err
	}
	expires := time.Now().Add(7 * 24 * time.Hour)
	token, _, err := app.Tokens.Create(ctx, auth.NewToken{
		TenantID: d.Tenant, Name: "playground", Role: domain.RoleAdmin, ExpiresAt: &expires,
	})
	if err != nil {
		return nil, err
	}
	key := "demo to rotate"
	spare, err := app.Tokens.CreateToken(ctx, auth.Command(d.Tenant), auth.CreateAccessTokenInput{
		Role: domain.RoleService, Name: "to rotate and revoke", Scopes: []domain.Scope{domain.ScopeRead}, IdempotencyKey: &key,
	})
	if err != nil {
		return nil, err
	}
	d.Token = spare.Value.ID
	_, _ = fmt.Fprintf(w.Stdout, "playground  %s/\ntoken       %s (admin, for a week)\n", address, token)
	_, _ = fmt.Fprintf(w.Stdout, "webhooks    %s/webhooks/payments/simulated, signed with %s\n", address, w.Config.WebhookSecrets[0])
	for _, line := range d.Lines() {
		_, _ = fmt.Fprintln(w.Stdout, line)
	}
	return web.Playground(web.Settings{Endpoint: "/graphql", Token: token, Tabs: d.Tabs()})
}
