package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"countersign/internal/domain"
	"countersign/internal/testdb"
	"countersign/internal/testdb/pgproxy"
)

// shop is a database that servers sell from, with the network between them and it. Its owner's
// connection looks at what really happened.
type shop struct {
	*testdb.DB
	proxy *pgproxy.Proxy
	conn  *pgx.Conn
}

func newShop(t *testing.T) *shop {
	t.Helper()
	d := testdb.New(t)
	return &shop{DB: d, proxy: pgproxy.New(t, d.URL), conn: d.Owner(t)}
}

// environ is what a server of the shop is told: it reaches the database over the proxy, and settles
// nothing by itself unless told to.
func (s *shop) environ(more ...string) []string {
	return append([]string{"DATABASE_URL=" + s.proxy.URL(), "DATABASE_DIRECT_URL=" + s.URL, "COUNTERSIGN_RECONCILE_INTERVAL=1h"}, more...)
}

// command runs the program beside the servers.
func (s *shop) command(t *testing.T, name string) string {
	t.Helper()
	out, err := output(t, t.TempDir(), s.environ(), name)
	if err != nil {
		t.Errorf("%s: %q, %v", name, out, err)
	}
	return out
}

// healthy asks the doctor.
func (s *shop) healthy(t *testing.T) {
	t.Helper()
	if out := s.command(t, "doctor"); !strings.HasPrefix(out, "healthy") {
		t.Errorf("the doctor says %q", out)
	}
}

// tally counts what the database holds of some orders.
type tally struct {
	Orders, Pending, Paid int // orders, and where they stand
	Charged, Calls        int // charges at the provider, and how often it was asked for them
	PaidSteps, RefundsDue int
}

// ids are the orders whose keys begin so, as the provider knows them.
func (s *shop) ids(t *testing.T, keys string) (ids []string) {
	t.Helper()
	rows, err := s.conn.Query(context.Background(), "SELECT id FROM orders WHERE starts_with(idempotency_key, $1) ORDER BY id", keys)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := pgx.CollectRows(rows, pgx.RowTo[domain.OrderID])
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range raw {
		ids = append(ids, id.String())
	}
	return ids
}

// tally counts the orders whose keys begin so.
func (s *shop) tally(t *testing.T, keys string) (n tally) {
	t.Helper()
	err := s.conn.QueryRow(context.Background(), `
		WITH these AS (SELECT * FROM orders WHERE starts_with(idempotency_key, $1)),
		charges AS (SELECT * FROM ops.simulated_payments WHERE status = 'CHARGED' AND reference = ANY($2))
		SELECT (SELECT count(*) FROM these), (SELECT count(*) FROM these WHERE status = 'PENDING'), (SELECT count(*) FROM these WHERE status = 'PAID'),
			(SELECT count(*) FROM charges), (SELECT coalesce(sum(calls), 0) FROM charges),
			(SELECT count(*) FROM order_history h JOIN these o ON h.order_id = o.id WHERE h.event = 'PAID'),
			(SELECT count(*) FROM captures c JOIN these o ON c.order_id = o.id WHERE c.state = 'REFUND_DUE')`, keys, s.ids(t, keys)).
		Scan(&n.Orders, &n.Pending, &n.Paid, &n.Charged, &n.Calls, &n.PaidSteps, &n.RefundsDue)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// want compares the orders whose keys begin so.
func (s *shop) want(t *testing.T, keys string, want tally) {
	t.Helper()
	if got := s.tally(t, keys); got != want {
		t.Errorf("orders %s…: got %+v, want %+v", keys, got, want)
	}
}

// soon is how long a test waits for what must happen.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// crowd is an HTTP client for many requests at once.
var crowd = &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 100}}

// answered is the answer to a placeOrder.
type answered struct {
	Order    struct{ ID, Status string }
	Replayed bool
}

// place buys two of the demo product. An answer that is lost is a *url.Error; anything else that is
// not an order is an error that shows it. Any goroutine may call it.
func (r *running) place(ctx context.Context, key, method string) (answered, error) {
	body, err := json.Marshal(map[string]string{"query": fmt.Sprintf(`mutation { placeOrder(input: {idempotencyKey: %q, customerId: %q,
		paymentMethod: %q, items: [{productId: %q, quantity: 2}]}) { replayed order { id status } userErrors { code message } } }`,
		key, r.value("customer"), method, r.value("product"))})
	if err != nil {
		return answered{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/graphql", bytes.NewReader(body))
	if err != nil {
		return answered{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+r.value("token"))
	response, err := crowd.Do(request)
	if err != nil {
		return answered{}, err
	}
	defer func() { _ = response.Body.Close() }()
	var got struct {
		Data struct {
			PlaceOrder *struct {
				answered
				UserErrors []any
			}
		}
		Errors []any
	}
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil {
		return answered{}, &url.Error{Op: "read", URL: r.url, Err: err}
	}
	if response.StatusCode != http.StatusOK || got.Data.PlaceOrder == nil || len(got.Data.PlaceOrder.UserErrors)+len(got.Errors) > 0 {
		return answered{}, fmt.Errorf("%s, %s: %d %+v", key, method, response.StatusCode, got)
	}
	return got.Data.PlaceOrder.answered, nil
}

// must is place, where the test cannot go on without the order.
func (r *running) must(t *testing.T, key, method string) answered {
	t.Helper()
	a, err := r.place(t.Context(), key, method)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Case 14: a buyer's request that is repeated, one after the other and 50 times at once, on two
// servers, buys once: one order, one call of the provider, the same id in each answer. All 50 stand
// before their INSERT together, so each has seen that there is no such order yet: without the unique
// indexes on the key and on its operation there are 50.
func TestCase14OneKeyOnTwoServers(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	environ := shop.environ("COUNTERSIGN_DATABASE_MAX_CONNS=30")
	servers := []*running{serve(t, t.TempDir(), environ...), serve(t, t.TempDir(), environ...)}

	first := servers[0].must(t, "calmly", "sim_ok")
	if first.Replayed || first.Order.Status != "PAID" {
		t.Errorf("the first answer: %+v", first)
	}
	for i := range 6 {
		if again := servers[i%2].must(t, "calmly", "sim_ok"); again.Order != first.Order || !again.Replayed {
			t.Errorf("repeated: %+v, first %+v", again, first)
		}
	}

	const buyers = 50
	barrier := shop.proxy.Hold(pgproxy.Query("InsertOrder").Times(buyers))
	var group sync.WaitGroup
	answers := make([]answered, buyers)
	faults := make([]error, buyers)
	for i := range buyers {
		group.Go(func() { answers[i], faults[i] = servers[i%2].place(t.Context(), "hastily", "sim_ok") })
	}
	if err := barrier.WaitN(soon(t), buyers); err != nil {
		t.Error(err)
	}
	barrier.Release()
	group.Wait()
	if err := errors.Join(faults...); err != nil {
		t.Fatal(err)
	}
	firsts := 0
	for _, a := range answers {
		if a.Order.ID != answers[0].Order.ID {
			t.Errorf("two orders: %s and %s", a.Order.ID, answers[0].Order.ID)
		}
		if !a.Replayed {
			firsts++
		}
	}
	if firsts != 1 {
		t.Errorf("%d answers say that they placed the order", firsts)
	}
	for _, key := range []string{"calmly", "hastily"} {
		shop.want(t, key, tally{Orders: 1, Paid: 1, Charged: 1, Calls: 1, PaidSteps: 1})
	}
	shop.healthy(t)
}

// Case 22: a payment whose answer never came is settled by the server's own job, without anybody's
// command: found at the provider, and not charged again.
func TestCase22TheReconcilerIsScheduled(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	s := serve(t, t.TempDir(), shop.environ("COUNTERSIGN_RECONCILE_INTERVAL=1s")...)
	if a := s.must(t, "lost", "sim_timeout_charged"); a.Order.Status != "PENDING" {
		t.Errorf("right after it was placed: %+v", a)
	}
	testdb.Eventually(t, func() bool { return shop.tally(t, "lost").Paid == 1 })
	shop.want(t, "lost", tally{Orders: 1, Paid: 1, Charged: 1, Calls: 1, PaidSteps: 1})
	shop.healthy(t)
}

// Case 22: the command settles what is pending, however young, and run again changes nothing.
func TestCase22ReconcileTwice(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	s := serve(t, t.TempDir(), shop.environ()...)
	s.must(t, "lost", "sim_timeout_charged")
	s.must(t, "unheard", "sim_timeout_uncharged")
	shop.want(t, "unheard", tally{Orders: 1, Pending: 1})
	for _, want := range []string{"payments settled 2,", "payments settled 0,"} {
		if out := shop.command(t, "reconcile"); !strings.HasPrefix(out, want) {
			t.Errorf("reconcile says %q, want %q", out, want)
		}
		shop.want(t, "lost", tally{Orders: 1, Paid: 1, Charged: 1, Calls: 1, PaidSteps: 1})
		shop.want(t, "unheard", tally{Orders: 1, Paid: 1, Charged: 1, Calls: 2, PaidSteps: 1})
	}
	shop.healthy(t)
}

// Two operators run the command at the same moment: each order is charged once and paid once. Both
// commands stand before each order's lock together; without the look at the captures behind it, the
// second one cannot settle what the first has settled. An attempt that the other has claimed is left
// to it, and counts as unknown.
func TestTwoReconcileAtOnce(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	s := serve(t, t.TempDir(), shop.environ()...)
	methods := []string{"sim_timeout_charged", "sim_timeout_uncharged", "sim_error_then_ok"}
	const orders = 12
	for i := range orders {
		s.must(t, fmt.Sprintf("lost %d", i), methods[i%len(methods)])
	}
	var barriers []*pgproxy.Hold
	for range orders {
		barriers = append(barriers, shop.proxy.Hold(pgproxy.Query("LockOrder").Times(2)))
	}
	var group sync.WaitGroup
	var settled [2]int
	for i := range settled {
		group.Go(func() {
			var unknown int
			out := shop.command(t, "reconcile")
			if _, err := fmt.Sscanf(out, "payments settled %d, still unknown %d,", &settled[i], &unknown); err != nil || settled[i]+unknown != orders {
				t.Errorf("reconcile says %q", out)
			}
		})
	}
	for i, barrier := range barriers {
		if err := barrier.WaitN(soon(t), 2); err != nil {
			t.Errorf("order %d: %v", i, err)
		}
		barrier.Release()
	}
	group.Wait()
	if settled[0]+settled[1] < orders {
		t.Errorf("both together have settled %d of %d", settled[0]+settled[1], orders)
	}
	got := shop.tally(t, "lost")
	got.Calls = 0 // under one key, as often as they like
	if want := (tally{Orders: orders, Paid: orders, Charged: orders, PaidSteps: orders}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	shop.healthy(t)
}

// A buyer who closes the browser while the provider takes its time has bought all the same.
func TestABuyerHangsUp(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	s := serve(t, t.TempDir(), shop.environ("COUNTERSIGN_SIMULATED_DELAY=300ms")...)
	ctx, hangUp := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := s.place(ctx, "impatient", "sim_slow")
		gone <- err
	}()
	testdb.Eventually(t, func() bool { return shop.tally(t, "impatient").Orders == 1 })
	hangUp()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Fatalf("the buyer was answered first: %v", err)
	}
	testdb.Eventually(t, func() bool { return shop.tally(t, "impatient").Paid == 1 })
	shop.want(t, "impatient", tally{Orders: 1, Paid: 1, Charged: 1, Calls: 1, PaidSteps: 1})
	shop.healthy(t)
}

// A server that is told to stop while 16 buyers are at it answers what it has begun: each order that
// a buyer was told of is there and paid, none is left in between, and the exit is clean. Whoever was
// not answered asks the next server under the same key.
func TestStoppedUnderLoad(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	environ := shop.environ("COUNTERSIGN_SIMULATED_DELAY=100ms")
	s := serve(t, t.TempDir(), environ...)
	type request struct{ key, method string }
	var (
		buyers     sync.WaitGroup
		mu         sync.Mutex
		placed     = map[string]request{} // by the order's id
		unanswered []request
		answers    atomic.Int64
	)
	for buyer := range 16 {
		buyers.Go(func() {
			for i := 0; ; i++ {
				r := request{fmt.Sprintf("buyer %d-%d", buyer, i), []string{"sim_ok", "sim_slow"}[buyer%2]}
				a, err := s.place(t.Context(), r.key, r.method)
				mu.Lock()
				if lost := (*url.Error)(nil); errors.As(err, &lost) {
					unanswered = append(unanswered, r)
				} else if placed[a.Order.ID] = r; err != nil || a.Order.Status != "PAID" || a.Replayed {
					t.Errorf("answered %+v, %v", a, err)
				}
				mu.Unlock()
				if err != nil {
					return
				}
				answers.Add(1)
			}
		})
	}
	testdb.Eventually(t, func() bool { return answers.Load() >= 100 })
	s.stop(t, syscall.SIGTERM)
	buyers.Wait()
	if s.err != nil {
		t.Errorf("exit after SIGTERM: %v\n%s", s.err, s.log)
	}
	there := shop.ids(t, "buyer")
	for id, r := range placed {
		if !slices.Contains(there, id) {
			t.Errorf("%s was answered %s, which is not there", r.key, id)
		}
	}
	// What was begun is finished: nothing waits for the reconciler.
	n := len(there)
	shop.want(t, "buyer", tally{Orders: n, Paid: n, Charged: n, Calls: n, PaidSteps: n})

	next := serve(t, t.TempDir(), environ...)
	for _, r := range unanswered {
		if a := next.must(t, r.key, r.method); a.Order.Status != "PAID" {
			t.Errorf("%s, asked again: %+v", r.key, a)
		}
	}
	n = len(placed) + len(unanswered)
	shop.want(t, "buyer", tally{Orders: n, Paid: n, Charged: n, Calls: n, PaidSteps: n})
	shop.healthy(t)
}
