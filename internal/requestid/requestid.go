// Package requestid gives every request an id that stands in its answer, its errors and its log
// lines.
package requestid

import (
	"context"
	"log/slog"
	"net/http"
	"regexp"

	"github.com/gofrs/uuid/v5"
)

// Header carries the id in both directions.
const Header = "X-Request-Id"

type key struct{}

// acceptable is an id of the client's, or of a proxy before us, that is safe in a log.
var acceptable = regexp.MustCompile(`^[A-Za-z0-9._-]{8,64}$`)

// Handler gives each request its id: the one it brings, if that is acceptable, else a new one.
func Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get(Header)
		if !acceptable.MatchString(id) {
			id = uuid.Must(uuid.NewV7()).String()
		}
		w.Header().Set(Header, id)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), key{}, id)))
	})
}

// From is the request's id; "" outside of a request.
func From(ctx context.Context) string {
	id, _ := ctx.Value(key{}).(string)
	return id
}

// LogHandler adds the request's id to each log record.
type LogHandler struct{ slog.Handler }

// Handle adds the id.
func (h LogHandler) Handle(ctx context.Context, record slog.Record) error {
	if id := From(ctx); id != "" {
		record.AddAttrs(slog.String("request_id", id))
	}
	return h.Handler.Handle(ctx, record)
}

// WithAttrs keeps the id on derived loggers.
func (h LogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return LogHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup keeps the id on derived loggers.
func (h LogHandler) WithGroup(name string) slog.Handler { return LogHandler{h.Handler.WithGroup(name)} }
