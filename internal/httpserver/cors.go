package httpserver

import (
	"net/http"
	"slices"
	"strings"
)

// What pages of other origins may send, and may read of an answer beside its body.
const (
	corsMethods = "GET, POST"
	corsHeaders = "Authorization, Content-Type, X-Request-Id"
	corsExposed = "X-Request-Id, RateLimit, RateLimit-Policy, Retry-After"
	corsMaxAge  = "7200" // seconds; no browser keeps it for longer
)

// cors lets pages of the listed origins call a handler. Credentials that a browser adds by itself are
// never asked for, and no cookie is read: a caller is known by its Authorization header alone.
func cors(origins []string, next http.Handler) http.Handler {
	if len(origins) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Add("Vary", "Origin") // also where it is not allowed: a cache must not mix them up
		origin := r.Header.Get("Origin")
		allowed := slices.Contains(origins, origin)
		if allowed {
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Access-Control-Expose-Headers", corsExposed)
		}
		if r.Method != http.MethodOptions || origin == "" || r.Header.Get("Access-Control-Request-Method") == "" {
			next.ServeHTTP(w, r)
			return
		}
		h.Add("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers")
		if allowed {
			h.Set("Access-Control-Allow-Methods", corsMethods)
			h.Set("Access-Control-Allow-Headers", corsHeaders)
			h.Set("Access-Control-Max-Age", corsMaxAge)
			h.Del("Access-Control-Expose-Headers") // of the answer itself, not of the preflight's
		}
		h.Set("Allow", strings.Join([]string{corsMethods, "OPTIONS"}, ", "))
		w.WriteHeader(http.StatusNoContent)
	})
}
