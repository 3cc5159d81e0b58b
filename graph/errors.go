package graph

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"countersign/internal/domain"
	"countersign/internal/requestid"
)

// presenter is the one place that makes errors of the wire. What the domain refused is shown; what
// the parser or validator found is BAD_INPUT; everything else is INTERNAL, and its cause goes to
// the log under the request's id, never to the client.
type presenter struct{ logger *slog.Logger }

func (p presenter) present(ctx context.Context, err error) *gqlerror.Error {
	out := &gqlerror.Error{Message: "internal error", Path: graphql.GetPath(ctx)}
	code := domain.CodeInternal
	extensions := map[string]any{"requestId": requestid.From(ctx)}

	var wire *gqlerror.Error
	if errors.As(err, &wire) {
		out.Locations = wire.Locations
		if wire.Path != nil {
			out.Path = wire.Path
		}
		switch wire.Extensions["code"] {
		case errcode.ParseFailed, errcode.ValidationFailed:
			code, out.Message = domain.CodeBadInput, wire.Message
		}
	}
	var refusal domain.UserError
	if late := (*domain.Refusal)(nil); errors.As(context.Cause(ctx), &late) {
		why := *late // the query's time was up: every field that failed shares it
		err = why.Because(err)
	}
	var unknown *domain.OutcomeUnknownError
	if errors.As(err, &refusal) {
		code, out.Message = refusal.GetCode(), refusal.GetMessage()
		for _, name := range refusal.GetPath() {
			out.Path = append(out.Path, ast.PathName(name))
		}
	}
	if errors.As(err, &unknown) {
		extensions["idempotencyKey"] = unknown.IdempotencyKey
	}
	p.log(ctx, code, out.Path, err)
	extensions["code"] = string(code)
	out.Extensions = extensions
	return out
}

// log tells the operator what the client is not told. The chain of causes has no input in it
// beyond what PostgreSQL quotes, so details of errors are left out.
func (p presenter) log(ctx context.Context, code domain.Code, path ast.Path, err error) {
	level := slog.LevelDebug
	switch code {
	case domain.CodeInternal, domain.CodeSeriesInconsistent:
		level = slog.LevelError
	case domain.CodeBusy, domain.CodeUnavailable, domain.CodeOutcomeUnknown:
		level = slog.LevelWarn
	}
	p.logger.LogAttrs(ctx, level, "request failed", slog.String("code", string(code)),
		slog.String("path", path.String()), slog.String("cause", causes(err)))
}

// causes prints an error and what it wraps, where the wrapping does not print it itself.
func causes(err error) string {
	text := err.Error()
	var refusal domain.UserError
	if errors.As(err, &refusal) {
		if cause := errors.Unwrap(refusal); cause != nil {
			text += ": " + cause.Error()
		}
	}
	return text
}

// recovered turns a panic into an error; its stack goes to the log.
func (p presenter) recovered(ctx context.Context, panicked any) error {
	p.logger.ErrorContext(ctx, "panic", slog.Any("panic", panicked), slog.String("stack", string(debug.Stack())))
	return fmt.Errorf("panic: %v", panicked)
}

// about says which argument an error of input is about.
func about(argument string, err error) error {
	var refusal *domain.Refusal
	if errors.As(err, &refusal) && len(refusal.Path) == 0 {
		return domain.Refuse(refusal.Code, []string{argument}, "%s", refusal.Message)
	}
	return err
}
