package graph

import (
	"encoding/json"
	"errors"
	"log/slog"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"countersign/internal/accesslog"
	"countersign/internal/domain"
	"countersign/internal/ratelimit"
)

// The media types of an answer.
const (
	mediaResponse = "application/graphql-response+json"
	mediaJSON     = "application/json"
)

// negotiate picks the answer's media type by the Accept header: the GraphQL one only where it is
// named, since older clients know application/json alone.
func negotiate(accept []string) (media string, ok bool) {
	if strings.TrimSpace(strings.Join(accept, "")) == "" {
		return mediaJSON, true
	}
	best := -1.0
	ranges := strings.Split(strings.Join(accept, ","), ",")
	for _, r := range ranges {
		if strings.TrimSpace(r) == "" {
			continue
		}
		name, parameters, err := mime.ParseMediaType(r)
		if err != nil {
			continue
		}
		q := 1.0
		if text, given := parameters["q"]; given {
			if q, err = strconv.ParseFloat(text, 64); err != nil {
				continue
			}
		}
		if charset, given := parameters["charset"]; q <= best || q == 0 || given && !strings.EqualFold(charset, "utf-8") {
			continue
		}
		switch name {
		case mediaResponse:
			media, best = mediaResponse, q
		case mediaJSON, "application/*", "*/*":
			media, best = mediaJSON, q
		}
	}
	return media, best > 0
}

// isJSON says whether a body's content type is JSON in UTF-8.
func isJSON(contentType string) bool {
	if contentType == mediaJSON { // as nearly all say it
		return true
	}
	name, parameters, err := mime.ParseMediaType(contentType)
	charset, given := parameters["charset"]
	return err == nil && name == mediaJSON && (!given || strings.EqualFold(charset, "utf-8"))
}

// requestErrorStatus is the status of a document that cannot be run: under application/json an
// intermediary could have answered 400, so the draft keeps 200 for a server's own answer.
func requestErrorStatus(media string) int {
	if media == mediaResponse {
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// statusOf is the status of a request that is refused as a whole.
func statusOf(err error) int {
	var refusal domain.UserError
	if !errors.As(err, &refusal) {
		return http.StatusInternalServerError
	}
	switch refusal.GetCode() {
	case domain.CodeUnauthenticated:
		return http.StatusUnauthorized
	case domain.CodeBusy, domain.CodeUnavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusBadRequest
}

// requestError is an answer without data: nothing was run.
type requestError struct {
	Errors gqlerror.List `json:"errors"`
}

// refuse answers a request as a whole with an error.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, media string, status int, err error) {
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="countersign"`)
		if h.Rates.Failures != nil {
			h.Rates.Failures.Take(ratelimit.Address(r, h.Rates.Proxies))
		}
	}
	var refusal domain.UserError
	if errors.As(err, &refusal) {
		accesslog.From(r.Context()).Refused(string(refusal.GetCode()))
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	h.write(w, r, media, status, requestError{gqlerror.List{h.present.present(r.Context(), err)}})
}

func (h *Handler) write(w http.ResponseWriter, r *http.Request, media string, status int, response any) {
	body, err := encode(response)
	if err != nil {
		h.Logger.ErrorContext(r.Context(), "cannot encode an answer", slog.Any("error", err))
		status, body = http.StatusInternalServerError, []byte(`{"errors":[{"message":"internal error","extensions":{"code":"INTERNAL"}}]}`)
	}
	w.Header().Set("Content-Type", media+"; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that is gone reads nothing
}

// encode makes the answer's body. The data of an operation is JSON already; encoding/json would read
// all of it once more, so where nothing failed it is sent as it is.
func encode(response any) ([]byte, error) {
	r, ok := response.(*graphql.Response)
	if !ok || len(r.Errors) > 0 || len(r.Data) == 0 {
		return json.Marshal(response)
	}
	body := append(append(make([]byte, 0, len(r.Data)+100), `{"data":`...), r.Data...)
	if len(r.Extensions) > 0 {
		extensions, err := json.Marshal(r.Extensions)
		if err != nil {
			return nil, err
		}
		body = append(append(body, `,"extensions":`...), extensions...)
	}
	return append(body, '}'), nil
}
