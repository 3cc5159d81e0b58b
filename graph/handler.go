package graph

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator/rules"

	"countersign/internal/auth"
	"countersign/internal/domain"
)

// MaxBody is the largest request body, in bytes.
const MaxBody = 1 << 20

// Options of a handler.
type Options struct {
	Resolver     ResolverRoot
	Authenticate func(ctx context.Context, token string) (auth.Caller, error)
	// Explore lets callers without a token read the schema, and suggests names near a misspelt one.
	Explore bool
	Limits  *Limits // nil: DefaultLimits
	// QueryTimeout is how long a query may take; 0: as long as its client waits. A mutation has the
	// deadlines of its writes.
	QueryTimeout time.Duration
	Rates        Rates
	Logger       *slog.Logger
	// Observe is told of each root field that was run, and its code: OK, or why not. May be nil.
	Observe func(object, field, code string)
}

// Handler serves GraphQL over HTTP by the GraphQL-over-HTTP draft: POST with JSON, GET for
// queries, application/graphql-response+json or application/json.
type Handler struct {
	exec    *executor.Executor
	present presenter
	Options
}

// NewHandler makes a Handler. It replaces gqlgen's own, whose transports answer some requests with
// the wrong status, and a request error with "data": null.
func NewHandler(o Options) *Handler {
	es := NewExecutableSchema(Config{Resolvers: o.Resolver})
	limits := DefaultLimits()
	if o.Limits != nil {
		limits = *o.Limits
	}
	accepted := newDocuments()
	h := &Handler{exec: executor.New(es), present: presenter{o.Logger}, Options: o}
	h.exec.SetErrorPresenter(func(ctx context.Context, err error) *gqlerror.Error { return h.present.present(ctx, err) })
	h.exec.SetRecoverFunc(h.present.recovered)
	h.exec.SetParserTokenLimit(limits.Tokens)
	h.exec.SetDisableSuggestion(!o.Explore)
	h.exec.SetDefaultRulesFn(func() *rules.Rules { return documentRules(o.Explore) })
	h.exec.SetQueryCache(accepted)
	h.exec.Use(limiter{limits, accepted})
	h.exec.Use(spelling{es.Schema()})
	h.exec.Use(costing{es.Schema(), limits.Cost})
	h.exec.Use(journal{o.Observe})
	h.exec.Use(fields{accessRules})
	h.exec.Use(sequence{})
	h.exec.Use(sharing{})
	return h
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = r.WithContext(graphql.StartOperationTrace(r.Context()))
	media, ok := negotiate(r.Header.Values("Accept"))
	if !ok {
		h.refuse(w, r, mediaJSON, http.StatusNotAcceptable, domain.BadInput("the answer is %s or %s", mediaResponse, mediaJSON))
		return
	}
	defer func() {
		if panicked := recover(); panicked != nil {
			h.refuse(w, r, media, http.StatusInternalServerError, h.present.recovered(r.Context(), panicked))
		}
	}()
	ctx, status, err := h.admit(w, r)
	if err != nil {
		h.refuse(w, r, media, status, err)
		return
	}
	params, status, err := readParams(w, r)
	if err != nil {
		h.refuse(w, r, media, status, err)
		return
	}
	h.execute(w, r.WithContext(ctx), media, params)
}

// readParams reads the GraphQL request from the HTTP request.
func readParams(w http.ResponseWriter, r *http.Request) (*graphql.RawParams, int, error) {
	switch r.Method {
	case http.MethodGet:
		params, err := queryParams(r.URL.Query())
		return params, http.StatusBadRequest, err
	case http.MethodPost:
	default:
		w.Header().Set("Allow", "GET, POST")
		return nil, http.StatusMethodNotAllowed, domain.BadInput("a GraphQL request is a POST, or a GET for queries")
	}
	if !isJSON(r.Header.Get("Content-Type")) {
		return nil, http.StatusUnsupportedMediaType, domain.BadInput("the body is application/json in UTF-8")
	}
	tooLarge := domain.Refuse(domain.CodeLimitExceeded, nil, "the body is larger than %d bytes", MaxBody)
	if r.ContentLength > MaxBody { // it says so itself: nobody is asked to send it
		return nil, http.StatusRequestEntityTooLarge, tooLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	var grown *http.MaxBytesError
	switch {
	case errors.As(err, &grown):
		return nil, http.StatusRequestEntityTooLarge, tooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, http.StatusRequestTimeout, domain.BadInput("the body did not come in time")
	case err != nil:
		return nil, http.StatusBadRequest, domain.BadInput("the body could not be read").Because(err)
	}
	params, err := decodeRequest(body)
	return params, http.StatusBadRequest, err
}

// queryParams reads a GET request's parameters.
func queryParams(query map[string][]string) (*graphql.RawParams, error) {
	object := map[string]any{}
	for name, values := range query {
		if len(values) != 1 {
			return nil, domain.BadInput("a parameter stands twice")
		}
		switch name {
		case "query", "operationName":
			object[name] = values[0]
		case "variables", "extensions":
			value, err := decodeJSON(name, []byte(values[0]))
			if err != nil {
				return nil, err
			}
			object[name] = value
		}
	}
	return newParams(object)
}

// execute runs a well-formed request and writes its answer.
func (h *Handler) execute(w http.ResponseWriter, r *http.Request, media string, params *graphql.RawParams) {
	ctx := r.Context()
	params.Headers = r.Header
	op, faults := h.exec.CreateOperationContext(ctx, params)
	if faults != nil {
		response := h.exec.DispatchError(graphql.WithOperationContext(ctx, op), few(faults))
		h.write(w, r, media, requestErrorStatus(media), requestError{response.Errors})
		return
	}
	if r.Method == http.MethodGet && op.Operation.Operation != ast.Query {
		w.Header().Set("Allow", "POST")
		h.refuse(w, r, media, http.StatusMethodNotAllowed, domain.BadInput("a mutation is a POST"))
		return
	}
	if _, known := auth.From(ctx); !known && !h.open(op.Operation.SelectionSet, map[string]bool{}) {
		h.refuse(w, r, media, http.StatusUnauthorized, domain.Refuse(domain.CodeUnauthenticated, nil, "an access token is required: Authorization: Bearer …"))
		return
	}
	op.DisableIntrospection = false // open has decided
	if h.QueryTimeout > 0 && op.Operation.Operation == ast.Query {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, h.QueryTimeout, domain.Refuse(domain.CodeLimitExceeded, nil, "the query took longer than %s: ask for less at once", h.QueryTimeout))
		defer cancel()
	}
	respond, ctx := h.exec.DispatchOperation(ctx, op)
	response := respond(ctx)
	if response == nil { // the request was cancelled
		h.refuse(w, r, media, http.StatusServiceUnavailable, domain.Unavailable())
		return
	}
	h.write(w, r, media, http.StatusOK, response)
}

// open says whether a selection of root fields may be read without a token: __typename always, the
// schema if exploring is allowed.
func (h *Handler) open(selections ast.SelectionSet, seen map[string]bool) bool {
	for _, selection := range selections {
		ok := true
		switch s := selection.(type) {
		case *ast.Field:
			ok = s.Name == "__typename" || h.Explore && (s.Name == "__schema" || s.Name == "__type")
		case *ast.InlineFragment:
			ok = h.open(s.SelectionSet, seen)
		case *ast.FragmentSpread:
			if !seen[s.Name] {
				seen[s.Name] = true
				ok = h.open(s.Definition.SelectionSet, seen)
			}
		}
		if !ok {
			return false
		}
	}
	return true
}
