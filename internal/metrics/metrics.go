// Package metrics counts what the server does, for Prometheus. Labels come from sets that the product
// fixes, never from what a client sends.
package metrics

import (
	"net/http"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics are a server's.
type Metrics struct {
	registry *prometheus.Registry
	requests *prometheus.HistogramVec
	fields   *prometheus.CounterVec
	runs     *prometheus.CounterVec
	retries  *prometheus.CounterVec
	jobs     *prometheus.HistogramVec
}

// New makes Metrics that count nothing yet, beside the Go runtime and the process.
func New() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "countersign_http_request_duration_seconds", Help: "How long HTTP requests took, by route, method and status.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"route", "method", "status"}),
		fields: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "countersign_graphql_root_fields_total", Help: "Root fields that were run, by type, field and code: OK, the code of the error, or that of the first user error.",
		}, []string{"type", "field", "code"}),
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "countersign_transactions_total", Help: "Writes and reads of the database by how they ended.",
		}, []string{"kind", "outcome"}),
		retries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "countersign_transaction_retries_total", Help: "Attempts of writes and reads beyond their first.",
		}, []string{"kind"}),
		jobs: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "countersign_job_duration_seconds", Help: "How long background jobs took, by kind and outcome.",
			Buckets: []float64{.01, .1, 1, 10, 60, 600},
		}, []string{"kind", "outcome"}),
	}
	m.registry.MustRegister(m.requests, m.fields, m.runs, m.retries, m.jobs,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler answers with what was counted.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry, MaxRequestsInFlight: 4, Timeout: 10 * time.Second})
}

// Request counts an HTTP request. route is the pattern that it matched, "" for none.
func (m *Metrics) Request(route, method string, status int, took time.Duration) {
	if route == "" {
		route = "other"
	}
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodHead, http.MethodOptions:
	default:
		method = "other"
	}
	m.requests.WithLabelValues(route, method, strconv.Itoa(status)).Observe(took.Seconds())
}

// Field counts a root field of the schema.
func (m *Metrics) Field(object, field, code string) {
	m.fields.WithLabelValues(object, field, code).Inc()
}

// Transaction counts a write or a read.
func (m *Metrics) Transaction(kind, outcome string, attempts int) {
	m.runs.WithLabelValues(kind, outcome).Inc()
	m.retries.WithLabelValues(kind).Add(float64(max(0, attempts-1)))
}

// Job counts a run of a background job.
func (m *Metrics) Job(kind string, err error, took time.Duration) {
	outcome := "done"
	if err != nil {
		outcome = "failed"
	}
	m.jobs.WithLabelValues(kind, outcome).Observe(took.Seconds())
}

// Queue watches how many requests wait for the next statement of a group.
func (m *Metrics) Queue(group string, waiting func() int) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "countersign_join_waiting", Help: "Requests that wait to share the next statement of their group.", ConstLabels: prometheus.Labels{"group": group},
	}, func() float64 { return float64(waiting()) }))
}

// Pool watches a pool of connections.
func (m *Metrics) Pool(pool *pgxpool.Pool) {
	for _, g := range []struct {
		name, help string
		read       func(*pgxpool.Stat) float64
	}{
		{"connections_in_use", "Connections that are at work.", func(s *pgxpool.Stat) float64 { return float64(s.AcquiredConns()) }},
		{"connections_idle", "Connections that are not.", func(s *pgxpool.Stat) float64 { return float64(s.IdleConns()) }},
		{"connections_max", "Connections that there may be.", func(s *pgxpool.Stat) float64 { return float64(s.MaxConns()) }},
	} {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "countersign_database_" + g.name, Help: g.help},
			func() float64 { return g.read(pool.Stat()) }))
	}
	for _, c := range []struct {
		name, help string
		read       func(*pgxpool.Stat) float64
	}{
		{"acquires_total", "Connections that were taken from the pool.", func(s *pgxpool.Stat) float64 { return float64(s.AcquireCount()) }},
		{"acquires_waited_total", "Of them, those that had to be waited for.", func(s *pgxpool.Stat) float64 { return float64(s.EmptyAcquireCount()) }},
		{"acquires_cancelled_total", "Waits that were given up.", func(s *pgxpool.Stat) float64 { return float64(s.CanceledAcquireCount()) }},
		{"acquire_wait_seconds_total", "How long was waited for connections.", func(s *pgxpool.Stat) float64 { return s.AcquireDuration().Seconds() }},
	} {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "countersign_database_" + c.name, Help: c.help},
			func() float64 { return c.read(pool.Stat()) }))
	}
}
