// Package accesslog keeps what is known of a request while it is served, for its line in the log and
// for every other line that is written under it: who calls, and what is run. It holds no secret, no
// variable and no text of a query.
package accesslog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"sync"
)

// Bounds of what a client can make a line say.
const (
	maxName      = 100 // characters of an operation's name
	maxMutations = 20  // that a line lists
)

// Entry is what is known of a request. Its methods do nothing on nil: outside of a request.
type Entry struct {
	mu        sync.Mutex
	caller    func() (tenant, caller, role string)
	operation string
	code      string
	mutations []Mutation
}

// Mutation is a mutation that a request has run, or was refused.
type Mutation struct {
	Field string   `json:"field"`
	Key   string   `json:"key,omitempty"`   // the start of the idempotency key's SHA-256
	Codes []string `json:"codes,omitempty"` // of its error, or of its user errors
}

type key struct{}

// With is a context in which a request is served, and its entry.
func With(ctx context.Context) (context.Context, *Entry) {
	e := &Entry{}
	return context.WithValue(ctx, key{}, e), e
}

// From is the entry of the request; nil outside of one.
func From(ctx context.Context) *Entry {
	e, _ := ctx.Value(key{}).(*Entry)
	return e
}

// Caller says who calls: the tenant's id, the caller's name and its role, asked for only where a line is
// written.
func (e *Entry) Caller(who func() (tenant, caller, role string)) {
	e.change(func() { e.caller = who })
}

// Operation says what the client calls what it runs.
func (e *Entry) Operation(name string) {
	e.change(func() { e.operation = name[:min(len(name), maxName)] }) // a GraphQL name is ASCII
}

// Refused says by which code the request was refused as a whole.
func (e *Entry) Refused(code string) { e.change(func() { e.code = code }) }

// Ran says that a mutation was run.
func (e *Entry) Ran(m Mutation) {
	e.change(func() {
		if len(e.mutations) < maxMutations {
			e.mutations = append(e.mutations, m)
		}
	})
}

func (e *Entry) change(f func()) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	f()
}

// Who are the caller's attributes of a log line; none before the caller is known.
func (e *Entry) Who() (attrs []slog.Attr) {
	e.change(func() {
		if e.caller != nil {
			tenant, caller, role := e.caller()
			attrs = []slog.Attr{slog.String("tenant", tenant), slog.String("caller", caller), slog.String("role", role)}
		}
	})
	return attrs
}

// What are the attributes of what was asked, for the request's own line.
func (e *Entry) What() (attrs []slog.Attr) {
	e.change(func() {
		for name, value := range map[string]string{"operation": e.operation, "code": e.code} {
			if value != "" {
				attrs = append(attrs, slog.String(name, value))
			}
		}
		if len(e.mutations) > 0 {
			attrs = append(attrs, slog.Any("mutations", append([]Mutation(nil), e.mutations...)))
		}
	})
	return attrs
}

// HashKey is how a line names an idempotency key, which may hold anything: enough of its hash to find
// the request again, and nothing of the key.
func HashKey(idempotencyKey string) string {
	sum := sha256.Sum256([]byte(idempotencyKey))
	return hex.EncodeToString(sum[:8])
}

// LogHandler adds who calls to each log record.
type LogHandler struct{ slog.Handler }

// Handle adds the caller.
func (h LogHandler) Handle(ctx context.Context, record slog.Record) error {
	record.AddAttrs(From(ctx).Who()...)
	return h.Handler.Handle(ctx, record)
}

// WithAttrs keeps the caller on derived loggers.
func (h LogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return LogHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup keeps the caller on derived loggers.
func (h LogHandler) WithGroup(name string) slog.Handler { return LogHandler{h.Handler.WithGroup(name)} }
