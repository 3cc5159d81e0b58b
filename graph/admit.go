package graph

import (
	"context"
	"net/http"
	"net/netip"
	"strings"

	"countersign/internal/accesslog"
	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/ratelimit"
)

// Rates say how often requests are admitted. The zero value admits all.
type Rates struct {
	Callers  *ratelimit.Limiter // of each caller
	Failures *ratelimit.Limiter // of each address, without a good token
	Proxies  []netip.Prefix     // whose X-Forwarded-For is believed
}

// admit says who calls, if a token is presented at all, and whether it may ask now. An address with
// too many failures is refused before its token is looked at: what is guessed must not be told.
func (h *Handler) admit(w http.ResponseWriter, r *http.Request) (context.Context, int, error) {
	if h.Rates.Failures != nil {
		if state := h.Rates.Failures.Look(ratelimit.Address(r, h.Rates.Proxies)); !state.OK {
			state.Describe(w.Header())
			return nil, http.StatusTooManyRequests, domain.Refuse(domain.CodeLimitExceeded, nil, "too many requests without a valid access token: ask again later")
		}
	}
	ctx, status, err := h.authenticate(r)
	if err != nil {
		return nil, status, err
	}
	if c, known := auth.From(ctx); known && h.Rates.Callers != nil {
		state := h.Rates.Callers.Take(c.TenantID.String() + " " + c.By())
		state.Describe(w.Header())
		if !state.OK {
			return nil, http.StatusTooManyRequests, domain.Refuse(domain.CodeLimitExceeded, nil, "too many requests: ask again later")
		}
	}
	return ctx, 0, nil
}

// authenticate says who calls, if a token is presented at all.
func (h *Handler) authenticate(r *http.Request) (context.Context, int, error) {
	header := r.Header.Get("Authorization")
	if header == "" {
		return r.Context(), 0, nil
	}
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return nil, http.StatusUnauthorized, domain.Refuse(domain.CodeUnauthenticated, nil, "the Authorization header is: Bearer, a space, and an access token")
	}
	caller, err := h.Authenticate(r.Context(), token)
	if err != nil {
		return nil, statusOf(err), err
	}
	accesslog.From(r.Context()).Caller(func() (string, string, string) { return caller.TenantID.String(), caller.By(), string(caller.Role) })
	return auth.With(r.Context(), caller), 0, nil
}
