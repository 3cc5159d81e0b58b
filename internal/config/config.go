// Package config reads the configuration from the environment.
package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"

	"countersign/internal/payment"
)

// Environment is what a server is for.
type Environment string

// The environments. In development the server explores and explains itself: the playground, the
// demo tenant, suggestions, readable logs.
const (
	Development Environment = "development"
	Production  Environment = "production"
)

// Config is the configuration; each field's description is what --help and the documentation say.
type Config struct {
	DatabaseURL       string        `env:"DATABASE_URL" desc:"PostgreSQL to work with, as a member of the role countersign_runtime, or a pooler before it; unset: a PostgreSQL of its own"`
	DatabaseDirectURL string        `env:"DATABASE_DIRECT_URL" desc:"the same database as its owner and past any pooler, for migrations; unset: DATABASE_URL"`
	DataDir           string        `env:"COUNTERSIGN_DATA_DIR" envDefault:".data" desc:"where the PostgreSQL of its own keeps its data"`
	PostgresBin       string        `env:"COUNTERSIGN_POSTGRES_BIN" desc:"folder with initdb and postgres for the PostgreSQL of its own; unset: where they are usually installed"`
	MaxConns          int32         `env:"COUNTERSIGN_DATABASE_MAX_CONNS" envDefault:"20" desc:"connections to the database, at most"`
	AcquireTimeout    time.Duration `env:"COUNTERSIGN_DATABASE_ACQUIRE_TIMEOUT" envDefault:"2s" desc:"how long a request waits for a connection before it is answered BUSY"`
	MutationTimeout   time.Duration `env:"COUNTERSIGN_MUTATION_TIMEOUT" envDefault:"10s" desc:"how long an accepted mutation may take, whether its client waits or not"`
	AllocationBatch   int           `env:"COUNTERSIGN_ALLOCATION_BATCH" envDefault:"128" desc:"allocations of one series that share a transaction when they arrive together, at most; 1 switches joining off"`
	AllocationQueue   int           `env:"COUNTERSIGN_ALLOCATION_QUEUE" envDefault:"10000" desc:"allocations that wait for a transaction to share, at most; further ones are answered BUSY"`
	QueryTimeout      time.Duration `env:"COUNTERSIGN_QUERY_TIMEOUT" envDefault:"20s" desc:"how long a query may take before it is answered LIMIT_EXCEEDED"`
	HeaderTimeout     time.Duration `env:"COUNTERSIGN_HEADER_TIMEOUT" envDefault:"10s" desc:"how long a client may take to send the header of a request"`
	ReadTimeout       time.Duration `env:"COUNTERSIGN_READ_TIMEOUT" envDefault:"30s" desc:"how long a client may take to send a whole request"`
	WebhookSecrets    []string      `env:"COUNTERSIGN_SIMULATED_WEBHOOK_SECRETS" desc:"secrets that sign the simulated provider's webhooks, comma-separated, two during a rotation: at least 16 characters each, or whsec_ and base 64; required in production, a known one in development"`
	SimulatedDelay    time.Duration `env:"COUNTERSIGN_SIMULATED_DELAY" envDefault:"3s" desc:"how long the simulated provider takes for the method sim_slow"`
	ReconcileInterval time.Duration `env:"COUNTERSIGN_RECONCILE_INTERVAL" envDefault:"1m" desc:"how often payments of unknown outcome are looked up; those at least as old as this"`
	MaxCost           int           `env:"COUNTERSIGN_MAX_COST" envDefault:"20000" desc:"what a GraphQL request may cost, at most: statements and rows, where every page is full"`
	MaxMutations      int           `env:"COUNTERSIGN_MAX_MUTATIONS" envDefault:"10" desc:"root fields of a GraphQL mutation, at most"`
	MaxRootFields     int           `env:"COUNTERSIGN_MAX_ROOT_FIELDS" envDefault:"20" desc:"root fields of a GraphQL query, at most"`
	MaxAliases        int           `env:"COUNTERSIGN_MAX_ALIASES" envDefault:"100" desc:"aliases of a GraphQL document, at most"`
	MaxDepth          int           `env:"COUNTERSIGN_MAX_DEPTH" envDefault:"20" desc:"levels of a GraphQL document, at most; the playground needs 15"`
	ListenAddr        string        `env:"LISTEN_ADDR" envDefault:"127.0.0.1:8080" desc:"address to serve on; port 0 takes any free one"`
	Env               Environment   `env:"COUNTERSIGN_ENV" envDefault:"development" desc:"development or production"`
	MetricsAddr       string        `env:"COUNTERSIGN_METRICS_ADDR" desc:"where /metrics is served: host:port for a listener of its own, main for LISTEN_ADDR, none for nowhere; unset: main in development, none in production"`
	CORSOrigins       []string      `env:"COUNTERSIGN_CORS_ORIGINS" desc:"origins whose pages may call /graphql, comma-separated, each exactly as a browser sends it: https://app.example.com; unset: none"`
	TrustedProxies    []string      `env:"COUNTERSIGN_TRUSTED_PROXIES" desc:"addresses or networks of the proxies whose X-Forwarded-For is believed, comma-separated: 10.0.0.0/8; unset: none"`
	RateLimit         float64       `env:"COUNTERSIGN_RATE_LIMIT" envDefault:"0" desc:"requests to /graphql that a caller may make per second, in each process; 0: as many as it likes"`
	RateBurst         int           `env:"COUNTERSIGN_RATE_BURST" envDefault:"0" desc:"requests that a caller may make at once; 0: ten seconds' worth"`
	FailedAuthLimit   float64       `env:"COUNTERSIGN_FAILED_AUTH_LIMIT" envDefault:"0" desc:"requests without a good token that an address may make per second before it is refused unread; 0: as many as it likes. Behind a proxy set COUNTERSIGN_TRUSTED_PROXIES first: else all clients are one address"`
	FailedAuthBurst   int           `env:"COUNTERSIGN_FAILED_AUTH_BURST" envDefault:"0" desc:"requests without a good token that an address may make at once; 0: ten seconds' worth"`
	JWTIssuer         string        `env:"COUNTERSIGN_JWT_ISSUER" desc:"whose JWTs are accepted beside access tokens, as their claim iss says it; unset: nobody's"`
	JWTAudience       string        `env:"COUNTERSIGN_JWT_AUDIENCE" desc:"what the claim aud of a JWT has to hold"`
	JWTKeysURL        string        `env:"COUNTERSIGN_JWT_JWKS_URL" desc:"where the issuer publishes its keys: https, or http on loopback"`
	JWTAlgorithms     []string      `env:"COUNTERSIGN_JWT_ALGORITHMS" envDefault:"RS256,PS256,ES256,EdDSA" desc:"signatures that a JWT may have, comma-separated; symmetric ones and none are refused"`
	JWTSkew           time.Duration `env:"COUNTERSIGN_JWT_SKEW" envDefault:"60s" desc:"by how much the issuer's clock may differ, at most 10m"`
	JWTRefresh        time.Duration `env:"COUNTERSIGN_JWT_REFRESH" envDefault:"15m" desc:"how often the issuer's keys are fetched: a key that it drops is good for so long, at most"`
	JWTTenantClaim    string        `env:"COUNTERSIGN_JWT_TENANT_CLAIM" envDefault:"tenant" desc:"the claim that names the tenant, by its handle or id; like all of them a name or a path of objects: app.tenant"`
	JWTCustomerClaim  string        `env:"COUNTERSIGN_JWT_CUSTOMER_CLAIM" envDefault:"customer" desc:"the claim that names the customer (cus_…) of the role customer"`
	JWTRolesClaim     string        `env:"COUNTERSIGN_JWT_ROLES_CLAIM" envDefault:"roles" desc:"the claim that holds one of admin, service and customer, alone or beside others: realm_access.roles"`
	JWTScopeClaim     string        `env:"COUNTERSIGN_JWT_SCOPE_CLAIM" desc:"the claim that narrows a JWT to scopes where it is present; unset: none does"`
	LogLevel          slog.Level    `env:"COUNTERSIGN_LOG_LEVEL" envDefault:"INFO" desc:"DEBUG, INFO, WARN or ERROR"`
	DrainDelay        time.Duration `env:"COUNTERSIGN_DRAIN_DELAY" envDefault:"0s" desc:"how long a server that was told to stop goes on serving while /readyz answers 503, for load balancers to notice"`
	ShutdownTimeout   time.Duration `env:"COUNTERSIGN_SHUTDOWN_TIMEOUT" envDefault:"20s" desc:"how long requests in flight may take to finish after that"`
}

// Load reads the configuration from an environment of "name=value". A bad value is an error of one
// line that names the variable.
func Load(environ []string) (c Config, err error) {
	err = env.ParseWithOptions(&c, env.Options{Environment: env.ToMap(environ)})
	if err != nil {
		return c, firstFault(err)
	}
	if c.Env == Development && len(c.WebhookSecrets) == 0 {
		c.WebhookSecrets = []string{DevelopmentWebhookSecret}
	}
	return c, c.check()
}

// DevelopmentWebhookSecret signs webhooks where nobody has said what else does. It is known to all.
const DevelopmentWebhookSecret = "whsec_Y291bnRlcnNpZ24gaW4gZGV2ZWxvcG1lbnQ="

func (c Config) check() error {
	switch {
	case c.Env != Development && c.Env != Production:
		return fmt.Errorf("COUNTERSIGN_ENV is development or production, not %q", c.Env)
	case c.DatabaseURL == "" && c.DatabaseDirectURL != "":
		return errors.New("DATABASE_DIRECT_URL is set, but DATABASE_URL is not")
	case c.DatabaseURL == "" && c.DataDir == "":
		return errors.New("COUNTERSIGN_DATA_DIR is empty, and DATABASE_URL is not set")
	case c.MaxConns < 1:
		return errors.New("COUNTERSIGN_DATABASE_MAX_CONNS is at least 1")
	case c.AllocationBatch < 1 || c.AllocationBatch > 1000:
		return errors.New("COUNTERSIGN_ALLOCATION_BATCH is 1 to 1000")
	case c.AllocationQueue < 1:
		return errors.New("COUNTERSIGN_ALLOCATION_QUEUE is at least 1")
	}
	if c.PostgresBin != "" {
		if _, err := os.Stat(filepath.Join(c.PostgresBin, "postgres")); err != nil {
			return fmt.Errorf("COUNTERSIGN_POSTGRES_BIN has no postgres: %w", err)
		}
	}
	if err := payment.CheckSecrets(c.WebhookSecrets); err != nil {
		return fmt.Errorf("COUNTERSIGN_SIMULATED_WEBHOOK_SECRETS: %w", err)
	}
	for name, url := range map[string]string{"DATABASE_URL": c.DatabaseURL, "DATABASE_DIRECT_URL": c.DatabaseDirectURL} {
		if url != "" && !strings.HasPrefix(url, "postgres://") && !strings.HasPrefix(url, "postgresql://") {
			return fmt.Errorf("%s is no postgres:// URL", name) // its value may hold a password
		}
	}
	for name, n := range map[string]int{
		"COUNTERSIGN_MAX_COST": c.MaxCost, "COUNTERSIGN_MAX_MUTATIONS": c.MaxMutations, "COUNTERSIGN_MAX_ROOT_FIELDS": c.MaxRootFields,
		"COUNTERSIGN_MAX_ALIASES": c.MaxAliases, "COUNTERSIGN_MAX_DEPTH": c.MaxDepth,
	} {
		if n < 1 || n > 1_000_000 {
			return fmt.Errorf("%s is a whole number from 1 to 1000000", name)
		}
	}
	for name, d := range map[string]time.Duration{
		"COUNTERSIGN_DATABASE_ACQUIRE_TIMEOUT": c.AcquireTimeout, "COUNTERSIGN_MUTATION_TIMEOUT": c.MutationTimeout,
		"COUNTERSIGN_QUERY_TIMEOUT": c.QueryTimeout, "COUNTERSIGN_HEADER_TIMEOUT": c.HeaderTimeout, "COUNTERSIGN_READ_TIMEOUT": c.ReadTimeout,
		"COUNTERSIGN_SHUTDOWN_TIMEOUT": c.ShutdownTimeout, "COUNTERSIGN_DRAIN_DELAY": c.DrainDelay + 1,
		"COUNTERSIGN_SIMULATED_DELAY": c.SimulatedDelay + 1, "COUNTERSIGN_RECONCILE_INTERVAL": c.ReconcileInterval,
	} {
		if d <= 0 {
			return fmt.Errorf("%s is a duration above zero, such as 10s", name)
		}
	}
	if _, _, err := net.SplitHostPort(c.ListenAddr); err != nil {
		return fmt.Errorf("LISTEN_ADDR is host:port, not %q", c.ListenAddr)
	}
	return c.checkCallers()
}

// firstFault says which variable could not be parsed, and as what.
func firstFault(err error) error {
	var faults env.AggregateError
	var fault env.ParseError
	if errors.As(err, &faults) && len(faults.Errors) > 0 && errors.As(faults.Errors[0], &fault) {
		if field, ok := reflect.TypeFor[Config]().FieldByName(fault.Name); ok {
			return fmt.Errorf("%s cannot be read: it is %s", field.Tag.Get("env"), kinds[field.Type])
		}
	}
	return err
}

var kinds = map[reflect.Type]string{
	reflect.TypeFor[time.Duration](): "a duration such as 10s",
	reflect.TypeFor[int32]():         "a whole number",
	reflect.TypeFor[int]():           "a whole number",
	reflect.TypeFor[float64]():       "a number",
	reflect.TypeFor[slog.Level]():    "DEBUG, INFO, WARN or ERROR",
}

// Describe lists the variables, their defaults and what they are for, for --help.
func Describe() string {
	var b strings.Builder
	t := reflect.TypeFor[Config]()
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		fmt.Fprintf(&b, "  %s\n      %s", tag.Get("env"), tag.Get("desc"))
		if value := tag.Get("envDefault"); value != "" {
			fmt.Fprintf(&b, " (default %s)", value)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
