package graph_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"countersign/graph"
	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/httpserver"
	"countersign/internal/invoicing"
	"countersign/internal/testdb"
	"countersign/internal/txn"
)

// wire is the real server on a real socket, before the api's database on a pool of its own.
type wire struct {
	*api
	address string
	gone    chan struct{} // one for each request whose client the server has seen hang up
}

// newWire starts it; tune has the last word on the server and its handler.
func newWire(t *testing.T, conns int32, settings txn.Settings, tune func(s *httpserver.Server, o *graph.Options)) *wire {
	t.Helper()
	var options graph.Options
	w := &wire{gone: make(chan struct{}, 100)}
	w.api = newAPI(t, func(d *testdb.DB, o *graph.Options) {
		db := txn.New(d.NewPool(t, conns), settings)
		o.Resolver = &graph.Resolver{DB: db, Invoicing: invoicing.New(db), Ordering: newOrdering(db)}
		options = *o
	})
	server := &httpserver.Server{Logger: options.Logger, Timeout: 10 * time.Second, Ready: func(context.Context) error { return nil }}
	if tune != nil {
		tune(server, &options)
	}
	handler := graph.NewHandler(options)
	server.GraphQL = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		context.AfterFunc(r.Context(), func() { w.gone <- struct{}{} })
		handler.ServeHTTP(rw, r)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil && err.Error() != http.ErrServerClosed.Error() {
			t.Errorf("the server ended with %v", err)
		}
	})
	w.address = listener.Addr().String()
	return w
}

// dial opens a socket, on which nothing is waited for longer than a test may take.
func (w *wire) dial(t *testing.T) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", w.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return conn.(*net.TCPConn)
}

// request is the text of a request, with the admin's token.
func (w *wire) request(t *testing.T, query string, variables vars, header ...string) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		t.Fatal(err)
	}
	return w.head("POST", append([]string{"Content-Type: application/json", fmt.Sprintf("Content-Length: %d", len(body))}, header...)...) + string(body)
}

// head is the text of a request's header.
func (w *wire) head(method string, header ...string) string {
	lines := append([]string{method + " /graphql HTTP/1.1", "Host: countersign", "Authorization: Bearer " + w.demo.admin}, header...)
	return strings.Join(lines, "\r\n") + "\r\n\r\n"
}

// say sends a text.
func say(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
}

// heard is the answer on a socket: its status, 0 where it was closed without one.
func heard(t *testing.T, conn net.Conn, method string) (status int, header http.Header, body string) {
	t.Helper()
	answer, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		return 0, nil, err.Error()
	}
	raw, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, answer.Header, string(raw)
}

// A mutation whose client hangs up finishes, wherever it is: while it waits for a connection of the
// pool, for a lock, or for its COMMIT; and the same key answers with what it did.
func TestMutationsOutliveTheirClients(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]struct {
		mutation, result, input string
		variables               func(n *tenant) vars
		hold                    func(t *testing.T, w *wire) (waiting, release func())
	}{
		"waiting for a connection": {
			"createCustomer", "customer", "CreateCustomerInput", func(*tenant) vars { return vars{"name": "First", "currency": "EUR"} },
			func(t *testing.T, w *wire) (func(), func()) {
				gate := w.db.Gate(t, "GetInvoices") // somebody else has the pool's only connection
				conn := w.dial(t)
				say(t, conn, w.request(t, `query ($id: ID!) { invoice(id: $id) { id } }`, vars{"id": w.demo.invoiceID}))
				gate.Await(t, 1)
				waits := make(chan struct{}, 100)
				w.db.Before("acquire", func(ctx context.Context) {
					if at := graphql.GetFieldContext(ctx); at != nil && at.Object == "Mutation" {
						waits <- struct{}{}
					}
				})
				return func() { <-waits }, gate.Open
			},
		},
		"waiting for a lock": {
			"allocateInvoice", "invoice", "AllocateInvoiceInput", func(n *tenant) vars { return allocation(n, 100) },
			func(t *testing.T, w *wire) (func(), func()) {
				tx, err := w.db.Owner(t).Begin(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := tx.Exec(t.Context(), "SELECT FROM series_counters FOR UPDATE"); err != nil {
					t.Fatal(err)
				}
				return func() { w.db.AwaitLockWaits(t, 1) }, func() { _ = tx.Rollback(context.Background()) }
			},
		},
		"before COMMIT": {
			"placeOrder", "order", "PlaceOrderInput", func(n *tenant) vars { return placement(n, 1) },
			func(t *testing.T, w *wire) (func(), func()) {
				gate := w.db.Gate(t, "commit")
				return func() { gate.Await(t, 1) }, gate.Open
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWire(t, 1, txn.Settings{AcquireTimeout: 15 * time.Second}, nil)
			query := fmt.Sprintf(`mutation ($i: %s!) { %s(input: $i) { %s { id } replayed userErrors { code } } }`, at.input, at.mutation, at.result)
			input := at.variables(w.demo)
			input["idempotencyKey"] = "the form"
			waiting, release := at.hold(t, w)
			conn := w.dial(t)
			say(t, conn, w.request(t, query, vars{"i": input}))
			waiting()
			_ = conn.SetLinger(0)
			_ = conn.Close()
			<-w.gone
			release()
			testdb.Eventually(t, func() bool {
				return testdb.Scan[int](t, w.db, `SELECT (SELECT count(*) FROM customers WHERE name = 'First')
					+ (SELECT count(*) FROM invoices WHERE total_minor = 100) + (SELECT count(*) FROM orders WHERE idempotency_key = 'the form')`) == 1
			})
			if r := w.must(t, w.demo.admin, query, vars{"i": input}); r.at(t, at.mutation+".replayed") != true || r.at(t, at.mutation+"."+at.result) == nil {
				t.Errorf("asked again it is answered %s", r.body)
			}
		})
	}
}

// A request that is refused as a whole says so with the right status, on a socket that may be spelt in
// every way that HTTP allows.
func TestStatusesOnTheSocket(t *testing.T) {
	t.Parallel()
	w := newWire(t, 2, txn.Settings{AcquireTimeout: 20 * time.Millisecond}, func(s *httpserver.Server, o *graph.Options) {
		s.HeaderTimeout, s.ReadTimeout = time.Second, 2*time.Second
	})
	const asJSON, ask = "Content-Type: application/json", `{"query": "{ __typename }"}`
	chunk := func(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }
	large := strings.Repeat(" ", graph.MaxBody)
	for _, c := range []struct {
		name, method, text string
		status             int
		code               string // "-": no body
	}{
		{"chunks", "POST", w.head("POST", asJSON, "Transfer-Encoding: chunked") + chunk(ask[:9]) + chunk(ask[9:]) + "0\r\n\r\n", 200, ""},
		{"chunks beyond the limit", "POST", w.head("POST", asJSON, "Transfer-Encoding: chunked") + chunk(large) + chunk(ask), 413, "LIMIT_EXCEEDED"},
		{"a length beyond the limit, of which nothing is sent", "POST", w.head("POST", asJSON, fmt.Sprintf("Content-Length: %d", graph.MaxBody+1)), 413, "LIMIT_EXCEEDED"},
		{"the same, asking before it is sent", "POST", w.head("POST", asJSON, fmt.Sprintf("Content-Length: %d", graph.MaxBody+1), "Expect: 100-continue"), 413, "LIMIT_EXCEEDED"},
		{"another media type, asking before it is sent", "POST", w.head("POST", "Content-Type: text/plain", "Content-Length: 10", "Expect: 100-continue"), 415, "BAD_INPUT"},
		{"a body that does not come", "POST", w.head("POST", asJSON, "Content-Length: 10") + "{", 408, "BAD_INPUT"},
		{"a header that does not end", "POST", "POST /graphql HTTP/1.1\r\nHost: countersign\r\n", 0, "-"},
		{"HEAD", "HEAD", w.head("HEAD"), 405, "-"},
		{"OPTIONS", "OPTIONS", w.head("OPTIONS", "Origin: https://elsewhere.example"), 405, "BAD_INPUT"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conn := w.dial(t)
			_, _ = io.WriteString(conn, c.text) // the server need not read all of it
			status, header, body := heard(t, conn, c.method)
			if status != c.status || c.code != "" && c.code != "-" && !strings.Contains(body, `"code":"`+c.code+`"`) || c.code == "-" && strings.Contains(body, "{") {
				t.Errorf("answered %d %s, want %d %s", status, body, c.status, c.code)
			}
			if status == 405 && header.Get("Allow") != "GET, POST" {
				t.Errorf("allowed is %q", header.Get("Allow"))
			}
		})
	}
	t.Run("a body that was asked for", func(t *testing.T) {
		conn := w.dial(t)
		say(t, conn, w.head("POST", asJSON, fmt.Sprintf("Content-Length: %d", len(ask)), "Expect: 100-continue"))
		reader := bufio.NewReader(conn)
		if line, err := reader.ReadString('\n'); err != nil || !strings.HasPrefix(line, "HTTP/1.1 100") {
			t.Fatalf("asked to send, the server says %q, %v", line, err)
		}
		_, _ = reader.ReadString('\n')
		say(t, conn, ask)
		if answer, err := http.ReadResponse(reader, nil); err != nil || answer.StatusCode != 200 {
			t.Errorf("answered %v, %v", answer, err)
		}
	})
}

// A client that closes its half of the socket counts as gone: its query is ended, but a mutation
// finishes, and what it did can still be heard.
func TestHalfClosedSocket(t *testing.T) {
	t.Parallel()
	w := newWire(t, 2, txn.Settings{}, nil)
	gate := w.db.Gate(t, "InsertCustomer")
	conn := w.dial(t)
	say(t, conn, w.request(t, makeOne, vars{"name": "Half", "key": "half"}))
	gate.Await(t, 1)
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	<-w.gone
	gate.Open()
	if status, _, body := heard(t, conn, "POST"); status != 200 || !strings.Contains(body, `"customer":{"id":"cus_`) {
		t.Errorf("answered %d %s", status, body)
	}
}

// A query that takes too long is ended and says so, with what it had by then; so is one of which
// nothing can be told.
func TestQueryTimeout(t *testing.T) {
	t.Parallel()
	w := newWire(t, 2, txn.Settings{}, func(_ *httpserver.Server, o *graph.Options) { o.QueryTimeout = 2 * time.Second })
	tx, err := w.db.Owner(t).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(t.Context(), "LOCK TABLE invoice_lines IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	conn := w.dial(t)
	say(t, conn, w.request(t, askInvoice, vars{"id": w.demo.invoiceID}))
	status, _, body := heard(t, conn, "POST")
	if status != 200 || !strings.Contains(body, `"LIMIT_EXCEEDED"`) || !strings.Contains(body, `"number":"INV-00001","lines":null`) {
		t.Errorf("answered %d %s", status, body)
	}
	// A mutation has its own deadline: the lock ends it with BUSY, nothing else.
	conn = w.dial(t)
	say(t, conn, w.request(t, `mutation ($i: AllocateInvoiceInput!) { allocateInvoice(input: $i) { invoice { id } } }`, vars{"i": allocation(w.demo, 1)}))
	if status, _, body := heard(t, conn, "POST"); status != 200 || !strings.Contains(body, `"BUSY"`) {
		t.Errorf("a mutation behind the lock is answered %d %s", status, body)
	}
}

// Where not even the token can be looked up, a client is told when to come again.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	w := newWire(t, 2, txn.Settings{}, func(_ *httpserver.Server, o *graph.Options) {
		o.Authenticate = func(context.Context, string) (auth.Caller, error) { return auth.Caller{}, domain.Busy() }
	})
	conn := w.dial(t)
	say(t, conn, w.request(t, "{ __typename }", nil))
	if status, header, body := heard(t, conn, "POST"); status != 503 || header.Get("Retry-After") != "1" || !strings.Contains(body, `"BUSY"`) {
		t.Errorf("answered %d %v %s", status, header, body)
	}
}
