package metrics

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// scrape is what Prometheus reads.
func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// What the server does is counted under names that dashboards can rely on.
func TestNames(t *testing.T) {
	t.Parallel()
	m := New()
	waiting := 3
	m.Queue("access_tokens", func() int { return waiting })
	m.Request("/graphql", "POST", 200, 20*time.Millisecond)
	m.Field("Mutation", "placeOrder", "OK")
	m.Transaction("write", "done", 3)
	m.Transaction("write", "replayed", 0)
	m.Job("settle", nil, time.Second)
	m.Job("settle", errors.New("x"), time.Second)
	text := scrape(t, m)
	for _, line := range []string{
		`countersign_http_request_duration_seconds_bucket{method="POST",route="/graphql",status="200",le="0.025"} 1`,
		`countersign_graphql_root_fields_total{code="OK",field="placeOrder",type="Mutation"} 1`,
		`countersign_transactions_total{kind="write",outcome="done"} 1`,
		`countersign_transactions_total{kind="write",outcome="replayed"} 1`,
		`countersign_transaction_retries_total{kind="write"} 2`,
		`countersign_join_waiting{group="access_tokens"} 3`,
		`countersign_job_duration_seconds_count{kind="settle",outcome="done"} 1`,
		`countersign_job_duration_seconds_count{kind="settle",outcome="failed"} 1`,
		`go_goroutines `, `process_start_time_seconds `,
	} {
		if !strings.Contains(text, line) {
			t.Errorf("there is no %s", line)
		}
	}
}

// A client cannot make series: methods and paths of its own invention fall together.
func TestLabelsAreBounded(t *testing.T) {
	t.Parallel()
	m := New()
	for i := range 1000 {
		m.Request("", fmt.Sprint("VERB", i), 404, time.Millisecond)
	}
	if n := strings.Count(scrape(t, m), "countersign_http_request_duration_seconds_count"); n != 1 {
		t.Errorf("%d series of a thousand invented methods", n)
	}
}
