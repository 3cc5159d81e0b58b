package httpserver

import (
	"log/slog"
	"net/http"
	"time"

	"countersign/internal/accesslog"
)

// maxPath is how much of a path a log line holds, in bytes.
const maxPath = 200

// observed leaves a line in the log and a measurement for each request.
func (s *Server) observed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		ctx, entry := accesslog.With(r.Context())
		r = r.WithContext(ctx)
		seen := &recorder{ResponseWriter: w}
		defer func() {
			status := seen.status
			if status == 0 {
				status = http.StatusOK
			}
			panicked := recover()
			if panicked != nil {
				status = http.StatusInternalServerError
			}
			took := time.Since(start)
			if at := level(r.Pattern, status); s.Logger.Enabled(ctx, at) {
				s.Logger.LogAttrs(ctx, at, "request", append([]slog.Attr{
					slog.String("method", r.Method), slog.String("path", r.URL.Path[:min(len(r.URL.Path), maxPath)]),
					slog.Int("status", status), slog.Duration("took", took), slog.Int64("bytes", seen.bytes),
				}, entry.What()...)...)
			}
			if s.Observe != nil {
				s.Observe(r.Pattern, r.Method, status, took)
			}
			if panicked != nil {
				panic(panicked) // the server closes the connection
			}
		}()
		next.ServeHTTP(seen, r)
	})
}

// level of a request's line. Probes and scrapes that went well come every few seconds, and say nothing.
func level(route string, status int) slog.Level {
	if (route == "/livez" || route == "/readyz" || route == "/metrics") && status < 400 {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// recorder sees what is answered.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// WriteHeader notes the status.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 && status >= 200 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write notes the size.
func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(p)
	r.bytes += int64(n)
	return n, err
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
