package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"countersign/internal/testdb"
	"countersign/internal/testdb/pgproxy"
)

// webhookSecret signs what the tests' provider sends.
const webhookSecret = "the provider's own secret"

func secrets(s ...string) string {
	return "COUNTERSIGN_SIMULATED_WEBHOOK_SECRETS=" + strings.Join(s, ",")
}

// webhook is an event as the provider sends it.
type webhook struct {
	id, secret string
	at         time.Time
	body       string
	edit       func(*http.Request) // after it was signed
}

// paid says that an order of the demo product was paid.
func paid(id, order, payment string) webhook {
	return webhook{id: id, secret: webhookSecret, at: time.Now(), body: fmt.Sprintf(
		`{"type": "payment.paid", "paymentId": %q, "reference": %q, "amountMinor": 9900, "currency": "EUR"}`, payment, order)}
}

// deliver signs a webhook with the standard's own library, sends it and returns the answer's status.
// Any goroutine may call it.
func (r *running) deliver(ctx context.Context, w webhook) (int, error) {
	signer, err := standardwebhooks.NewWebhookRaw([]byte(w.secret))
	if err != nil {
		return 0, err
	}
	signature, err := signer.Sign(w.id, w.at, []byte(w.body))
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/webhooks/payments/simulated", strings.NewReader(w.body))
	if err != nil {
		return 0, err
	}
	request.Header.Set(standardwebhooks.HeaderWebhookID, w.id)
	request.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(w.at.Unix(), 10))
	request.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	if w.edit != nil {
		w.edit(request)
	}
	response, err := crowd.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// wantStatus delivers a webhook.
func (r *running) wantStatus(t *testing.T, want int, w webhook) {
	t.Helper()
	if status, err := r.deliver(t.Context(), w); status != want || err != nil {
		t.Errorf("the webhook %s: %d, %v; want %d", w.id, status, err, want)
	}
}

// inbox counts the events that were taken in, without the demo tenant's.
func (s *shop) inbox(t *testing.T) int {
	t.Helper()
	return testdb.Scan[int](t, s.DB, "SELECT count(*) FROM ops.payment_events WHERE event_id NOT LIKE 'demo to %'")
}

// Case 16: 200 times the storefront hears from the provider that an order is paid, and the
// provider's webhook says so at the same moment. The order is paid once, nothing is to be given
// back, and each webhook is answered 2xx. It is the storefront's own placeOrder that races: the
// provider has charged, and both stand before the order's lock, twenty orders at a time. Without
// that lock, or without the look at the captures behind it, one of the two is not answered so.
func TestCase16StorefrontAndWebhookTogether(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	s := serve(t, t.TempDir(), shop.environ("COUNTERSIGN_DATABASE_MAX_CONNS=50", secrets(webhookSecret))...)
	const rounds, orders = 10, 20
	for round := range rounds {
		keys := fmt.Sprintf("round %d,", round)
		barrier := shop.proxy.Hold(pgproxy.Query("LockOrder").Times(2 * orders))
		var group sync.WaitGroup
		for i := range orders {
			group.Go(func() {
				if a, err := s.place(t.Context(), fmt.Sprintf("%s order %d", keys, i), "sim_ok"); err != nil || a.Order.Status != "PAID" {
					t.Errorf("the storefront is answered %+v, %v", a, err)
				}
			})
		}
		if err := barrier.WaitN(soon(t), orders); err != nil {
			t.Error(err)
		}
		for order, payment := range shop.payments(t, keys) {
			group.Go(func() {
				if status, err := s.deliver(t.Context(), paid("evt "+payment, order, payment)); status != http.StatusNoContent || err != nil {
					t.Errorf("the webhook is answered %d, %v", status, err)
				}
			})
		}
		if err := barrier.WaitN(soon(t), 2*orders); err != nil {
			t.Error(err)
		}
		barrier.Release()
		group.Wait()
	}
	const n = rounds * orders
	shop.want(t, "round", tally{Orders: n, Paid: n, Charged: n, Calls: n, PaidSteps: n})
	if waiting := testdb.Scan[int](t, shop.DB, "SELECT count(*) FROM ops.payment_events WHERE processed_at IS NULL"); shop.inbox(t) != n || waiting > 0 {
		t.Errorf("%d of %d webhooks were taken in, and %d wait", shop.inbox(t), n, waiting)
	}
	shop.healthy(t)
}

// payments are the provider's payments, by their orders, whose keys begin so.
func (s *shop) payments(t *testing.T, keys string) map[string]string {
	t.Helper()
	rows, err := s.conn.Query(t.Context(), "SELECT reference, payment_id FROM ops.simulated_payments WHERE reference = ANY($1)", s.ids(t, keys))
	if err != nil {
		t.Fatal(err)
	}
	payments := map[string]string{}
	var order, payment string
	if _, err := pgx.ForEachRow(rows, []any{&order, &payment}, func() error { payments[order] = payment; return nil }); err != nil {
		t.Fatal(err)
	}
	return payments
}

// Whoever is not the provider cannot say that an order is paid, and what the provider says is taken
// in once, however often it is sent.
func TestWebhooksOverHTTP(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	s := serve(t, t.TempDir(), shop.environ(secrets(webhookSecret))...)
	order := s.must(t, "declined", "sim_declined").Order.ID
	good := func() webhook { return paid("evt good", order, "payment 1") }
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for name, c := range map[string]struct {
		change func(*webhook)
		want   int
	}{
		"another secret": {func(w *webhook) { w.secret = "somebody else's secret" }, 400},
		"too old":        {func(w *webhook) { w.at = time.Now().Add(-301 * time.Second) }, 400},
		"too new":        {func(w *webhook) { w.at = time.Now().Add(302 * time.Second) }, 400}, // a second may end on the way
		"an edited body": {func(w *webhook) { w.edit = otherBody(strings.Replace(w.body, "9900", "1", 1)) }, 400},
		"an edited id":   {func(w *webhook) { w.edit = header(standardwebhooks.HeaderWebhookID, "evt bad") }, 400},
		"an edited time": {func(w *webhook) {
			w.edit = header(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(w.at.Unix()-1, 10))
		}, 400},
		"no time":            {func(w *webhook) { w.edit = header(standardwebhooks.HeaderWebhookTimestamp, "soon") }, 400},
		"another signature":  {func(w *webhook) { w.edit = header(standardwebhooks.HeaderWebhookSignature, "v1,AAAA") }, 400},
		"without an id":      {func(w *webhook) { w.edit = without(standardwebhooks.HeaderWebhookID) }, 400},
		"without a time":     {func(w *webhook) { w.edit = without(standardwebhooks.HeaderWebhookTimestamp) }, 400},
		"without signature":  {func(w *webhook) { w.edit = without(standardwebhooks.HeaderWebhookSignature) }, 400},
		"no JSON":            {func(w *webhook) { w.body = "paid!" }, 400},
		"no event":           {func(w *webhook) { w.body = "{}" }, 400},
		"half a minor unit":  {func(w *webhook) { w.body = strings.Replace(w.body, "9900", "0.5", 1) }, 400},
		"one byte too large": {func(w *webhook) { w.body += strings.Repeat(" ", 64<<10+1-len(w.body)) }, 413},
		"not a POST":         {func(w *webhook) { w.edit = func(r *http.Request) { r.Method = http.MethodGet } }, 405},
	} {
		t.Run(name, func(t *testing.T) {
			w := good()
			c.change(&w)
			s.wantStatus(t, c.want, w)
		})
	}
	if n := shop.inbox(t); n != 0 {
		t.Errorf("%d events that are not the provider's were taken in", n)
	}
	shop.want(t, "declined", tally{Orders: 1, Pending: 1})

	largest := good()
	largest.body += strings.Repeat(" ", 64<<10-len(largest.body))
	largest.at = time.Now().Add(-290 * time.Second)
	for range 3 { // the first, and its replays
		s.wantStatus(t, 204, largest)
	}
	s.wantStatus(t, 204, paid("evt again", order, "payment 1"))
	if n := shop.inbox(t); n != 2 {
		t.Errorf("%d events were taken in, not 2", n)
	}
	shop.want(t, "declined", tally{Orders: 1, Paid: 1, PaidSteps: 1})
	shop.healthy(t)
}

func without(name string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Del(name) }
}

func otherBody(body string) func(*http.Request) {
	return func(r *http.Request) {
		other, _ := http.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.Body, r.GetBody, r.ContentLength = other.Body, other.GetBody, other.ContentLength
	}
}

// While the provider changes its secret both are good; afterwards the old one is not.
func TestWebhookSecretsRotate(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	const next = "the provider's next secret"
	during := serve(t, t.TempDir(), shop.environ(secrets(webhookSecret, next))...)
	after := serve(t, t.TempDir(), shop.environ(secrets(next))...)
	for i, c := range []struct {
		server *running
		secret string
		want   int
	}{{during, webhookSecret, 204}, {during, next, 204}, {after, next, 204}, {after, webhookSecret, 400}} {
		w := paid(fmt.Sprintf("evt %d", i), "ord_00000000000000000000000000", "payment")
		w.secret = c.secret
		c.server.wantStatus(t, c.want, w)
	}
	if n := shop.inbox(t); n != 3 {
		t.Errorf("%d events were taken in, not 3", n)
	}
}

// A webhook that comes while the database is gone is answered 503, which asks the provider to send
// it again; then it is taken in.
func TestAWebhookWithoutADatabase(t *testing.T) {
	t.Parallel()
	shop := newShop(t)
	s := serve(t, t.TempDir(), shop.environ("COUNTERSIGN_DATABASE_ACQUIRE_TIMEOUT=200ms", secrets(webhookSecret))...)
	event := paid("evt", s.must(t, "declined", "sim_declined").Order.ID, "payment")
	shop.proxy.Refuse(true)
	shop.proxy.CutAll()
	s.wantStatus(t, 503, event)
	if n := shop.inbox(t); n != 0 {
		t.Errorf("%d events were taken in", n)
	}
	shop.proxy.Refuse(false)
	s.wantStatus(t, 204, event)
	shop.want(t, "declined", tally{Orders: 1, Paid: 1, PaidSteps: 1})
	shop.healthy(t)
}
