// Package httpserver serves the product's routes, says whether it is ready for requests, and stops
// without losing any.
package httpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"countersign/internal/requestid"
)

// Server serves HTTP until it is told to stop.
type Server struct {
	GraphQL    http.Handler
	Webhooks   map[string]http.Handler // of payment providers, by their names
	Playground http.Handler            // nil: there is none
	Metrics    http.Handler            // nil: not on this listener
	Origins    []string                // whose pages may call GraphQL
	// Observe is told of each request: the pattern of its route, its method, status and duration. May be nil.
	Observe    func(route, method string, status int, took time.Duration)
	Ready      func(ctx context.Context) error // nil means ready; its error is shown to operators
	Logger     *slog.Logger
	DrainDelay time.Duration // how long to go on serving, unready, once told to stop
	Timeout    time.Duration // how long requests in flight may take after that

	HeaderTimeout time.Duration // how long a client may take to send a request's header; 0: 10 s
	ReadTimeout   time.Duration // how long it may take to send all of the request; 0: 30 s

	draining atomic.Bool
}

// Serve serves on a listener until ctx ends; then it drains: /readyz answers 503, after DrainDelay
// no connection is accepted, and what is in flight finishes.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	srv := newServer(s.routes(), s.Logger)
	srv.ReadHeaderTimeout = cmp.Or(s.HeaderTimeout, srv.ReadHeaderTimeout)
	srv.ReadTimeout = cmp.Or(s.ReadTimeout, srv.ReadTimeout)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	s.draining.Store(true)
	s.Logger.Info("draining")
	select {
	case <-time.After(s.DrainDelay):
	case err := <-served:
		return err
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Timeout)
	defer cancel()
	err := srv.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("requests were still in flight when the shutdown timed out")
		_ = srv.Close()
	}
	return err
}

// newServer bounds what a client can hold up.
func newServer(handler http.Handler, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second, // a body at a byte a second is cut off here
		WriteTimeout:      60 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
}

// ServeMetrics serves /metrics, and nothing else, on a listener of its own until ctx ends.
func ServeMetrics(ctx context.Context, listener net.Listener, handler http.Handler, logger *slog.Logger) {
	mux := http.NewServeMux()
	mux.Handle("/metrics", handler)
	srv := newServer(mux, logger)
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if err := srv.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		logger.ErrorContext(ctx, "the metrics are not served any more", slog.Any("error", err))
	}
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/graphql", cors(s.Origins, s.GraphQL))
	mux.HandleFunc("/livez", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "live", "") })
	mux.HandleFunc("/readyz", s.readyz)
	for provider, handler := range s.Webhooks {
		mux.Handle("/webhooks/payments/"+provider, handler)
	}
	if s.Metrics != nil {
		mux.Handle("/metrics", s.Metrics)
	}
	if s.Playground != nil {
		mux.Handle("/", s.Playground)
	}
	return requestid.Handler(s.observed(mux))
}

// readyz says whether to send requests here.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	if s.draining.Load() {
		answer(w, http.StatusServiceUnavailable, "draining", "")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
	defer cancel()
	if err := s.Ready(ctx); err != nil {
		s.Logger.WarnContext(ctx, "not ready", slog.Any("error", err))
		answer(w, http.StatusServiceUnavailable, "unready", "the database cannot be used")
		return
	}
	answer(w, http.StatusOK, "ready", "")
}

func answer(w http.ResponseWriter, status int, state, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(struct {
		Status string `json:"status"`
		Reason string `json:"reason,omitempty"`
	}{state, reason})
}
