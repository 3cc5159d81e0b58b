package graph_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"countersign/internal/domain"
	"countersign/internal/requestid"
)

// response is what a client sees.
type response struct {
	status     int
	header     http.Header
	body       string
	data       map[string]any
	errors     []wireError
	extensions map[string]any
}

// wireError is an error of the response.
type wireError struct {
	Message    string
	Path       []any
	Locations  []map[string]any
	Extensions map[string]any
}

// at is the value at a path of the data, such as "invoices.nodes.0.number"; null is nil.
func (r response) at(t testing.TB, path string) any {
	t.Helper()
	var value any = r.data
	for _, step := range strings.Split(path, ".") {
		found := false
		switch v := value.(type) {
		case map[string]any:
			value, found = v[step]
		case []any:
			i, err := strconv.Atoi(step)
			if found = err == nil && i < len(v); found {
				value = v[i]
			}
		}
		if !found {
			t.Fatalf("the answer has nothing at %s: %s", path, r.body)
		}
	}
	return value
}

// text is the string at a path of the data; anything else is printed.
func (r response) text(t testing.TB, path string) string {
	t.Helper()
	return fmt.Sprint(r.at(t, path))
}

// list is the list at a path of the data, each element's field printed ("" prints the element).
func (r response) list(t testing.TB, path, field string) []string {
	t.Helper()
	elements, ok := r.at(t, path).([]any)
	if !ok {
		t.Fatalf("the answer has no list at %s: %s", path, r.body)
	}
	out := make([]string, len(elements))
	for i, e := range elements {
		if row, ok := e.(map[string]any); ok && field != "" {
			e = row[field]
		}
		out[i] = fmt.Sprint(e)
	}
	return out
}

// codes are the codes of the response's errors, in order.
func (r response) codes() []string {
	out := make([]string, len(r.errors))
	for i, e := range r.errors {
		out[i] = fmt.Sprint(e.Extensions["code"])
	}
	return out
}

// path is the error's path as at takes it.
func (e wireError) path() string {
	steps := make([]string, len(e.Path))
	for i, step := range e.Path {
		steps[i] = fmt.Sprint(step)
	}
	return strings.Join(steps, ".")
}

// masked is the status and the body without what differs from request to request.
func (r response) masked() string {
	body := strings.ReplaceAll(r.body, r.header.Get(requestid.Header), "<request>")
	if key, told := r.extensions["idempotencyKey"].(string); told {
		body = strings.ReplaceAll(body, key, "<key>")
	}
	return strconv.Itoa(r.status) + " " + body
}

// wantCodes fails unless the response's errors have these codes, in this order.
func wantCodes(t testing.TB, r response, codes ...string) {
	t.Helper()
	if got := r.codes(); strings.Join(got, " ") != strings.Join(codes, " ") {
		t.Errorf("the errors are %q, want %q: %s", got, codes, r.body)
	}
}

// wantNone fails if the body holds one of the words: what a client must never see.
func wantNone(t testing.TB, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if strings.Contains(strings.ToLower(text), strings.ToLower(word)) {
			t.Errorf("%q must not stand in: %s", word, text)
		}
	}
}

// wantContract fails unless the response is what every response is: each error has a code of the
// contract, the request's id and a message, and nothing tells of the server's inside.
func (r response) wantContract(t testing.TB) {
	t.Helper()
	id := r.header.Get(requestid.Header)
	if id == "" {
		t.Errorf("the answer has no %s", requestid.Header)
	}
	for _, e := range r.errors {
		code, _ := e.Extensions["code"].(string)
		if !slices.Contains(topLevel, domain.Code(code)) || e.Message == "" {
			t.Errorf("the error has the code %q and the message %q: %s", code, e.Message, r.body)
		}
		if e.Extensions["requestId"] != id {
			t.Errorf("the error has the request id %v, the header says %s", e.Extensions["requestId"], id)
		}
	}
	wantNone(t, r.body, "SQLSTATE", "pgconn", "goroutine ", ".go:")
}

// topLevel are the codes an error of the response may have: none of them is a user error's.
var topLevel = []domain.Code{
	domain.CodeUnauthenticated, domain.CodeForbidden, domain.CodeBadInput, domain.CodeLimitExceeded, domain.CodeBusy,
	domain.CodeUnavailable, domain.CodeOutcomeUnknown, domain.CodeNotRun, domain.CodeSeriesInconsistent, domain.CodeInternal,
}
