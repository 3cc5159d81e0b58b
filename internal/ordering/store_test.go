package ordering_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign/internal/auth"
	"countersign/internal/doctor"
	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/ordering"
	"countersign/internal/payment"
	"countersign/internal/testdb"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// store is a tenant at work: a customer, products, and the use cases on a database of its own, with
// the simulated provider. When its test ends, the doctor has the last word.
type store struct {
	*testdb.DB
	*ordering.Service
	db       *txn.DB
	provider *provider
	caller   auth.Caller
	customer domain.CustomerID
	product  *sqlc.Product // 100.00 EUR, as many as one likes
	ahead    *atomic.Int64 // how far the server's clock is moved, in nanoseconds
	damaged  *atomic.Bool  // the test breaks an invariant on purpose
}

func newStore(t *testing.T) *store {
	t.Helper()
	d := testdb.New(t)
	s := &store{DB: d, ahead: &atomic.Int64{}, damaged: &atomic.Bool{}}
	s.open(t, 0)
	s.join(t, "store")
	t.Cleanup(func() {
		if !s.damaged.Load() {
			s.healthy(t)
		}
	})
	return s
}

// open makes the use cases on a pool of their own.
func (s *store) open(t *testing.T, size int32) {
	t.Helper()
	s.serve(txn.New(s.NewPool(t, size), txn.Settings{
		Clock: func() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }, AcquireTimeout: 20 * time.Second,
	}))
}

func (s *store) serve(db *txn.DB) {
	s.db = db
	s.provider = &provider{Simulated: payment.NewSimulated(db, 0, nil)}
	s.Service = ordering.New(db, s.provider)
}

// join makes the store another tenant's.
func (s *store) join(t *testing.T, slug string) {
	t.Helper()
	tenant, _, err := invoicing.New(s.db).CreateTenant(t.Context(), slug, "Store")
	if err != nil {
		t.Fatal(err)
	}
	s.caller = auth.Caller{TenantID: tenant.ID, TokenID: domain.NewID[domain.TokenID](), Role: domain.RoleAdmin}
	s.customer = s.newCustomer(t)
	s.product = s.newProduct(t, "BOARD", domain.Money{AmountMinor: 10000, Currency: "EUR"}, nil)
}

// secondServer is the same store through another server: a pool and a provider's client of its own.
func (s *store) secondServer(t *testing.T) *store {
	other := *s
	other.open(t, 0)
	return &other
}

// otherTenant is another tenant on the same server.
func (s *store) otherTenant(t *testing.T) *store {
	other := *s
	other.join(t, "other")
	return &other
}

func (s *store) newCustomer(t *testing.T) domain.CustomerID {
	t.Helper()
	out, err := invoicing.New(s.db).CreateCustomer(t.Context(), s.caller, invoicing.CreateCustomerInput{Name: "Rook & Pawn", Currency: "EUR"})
	if err != nil {
		t.Fatal(err)
	}
	return out.Value.ID
}

func (s *store) newProduct(t *testing.T, sku string, price domain.Money, stock *int64) *sqlc.Product {
	t.Helper()
	out, err := s.CreateProduct(t.Context(), s.caller, ordering.CreateProductInput{
		SKU: sku, Name: sku, UnitPriceMinor: price.AmountMinor, Currency: price.Currency, Stock: stock,
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Value
}

// input asks for one of the product, paid as the method says.
func (s *store) input(key, method string) ordering.PlaceOrderInput {
	return ordering.PlaceOrderInput{
		IdempotencyKey: key, CustomerID: &s.customer, PaymentMethod: &method,
		Items: []domain.OrderItemInput{{ProductID: s.product.ID, Quantity: 1}},
	}
}

// place places an order under a key of its own and expects it to work.
func (s *store) place(t *testing.T, method string) *sqlc.Order {
	t.Helper()
	out, err := s.Place(t.Context(), s.caller, s.input(domain.NewID[domain.OrderID]().String(), method))
	if err != nil {
		t.Fatalf("no order: %v", err)
	}
	return out.Value
}

// order is an order as it is now.
func (s *store) order(t *testing.T, id domain.OrderID) *sqlc.Order {
	t.Helper()
	orders, err := s.OrdersByID(t.Context(), s.caller, []domain.OrderID{id})
	if err != nil || orders[0] == nil {
		t.Fatalf("cannot read %s: %v", id, err)
	}
	return orders[0]
}

func (s *store) wantStatus(t *testing.T, id domain.OrderID, want domain.OrderStatus) *sqlc.Order {
	t.Helper()
	order := s.order(t, id)
	if order.Status != want {
		t.Errorf("the order is %s, want %s", order.Status, want)
	}
	return order
}

// wantHistory fails unless the order has come to where it is by these events.
func (s *store) wantHistory(t *testing.T, id domain.OrderID, want ...string) {
	t.Helper()
	got := testdb.Scan[[]string](t, s.DB, "SELECT array_agg(event ORDER BY position) FROM order_history WHERE order_id = $1", id)
	if !slices.Equal(got, want) {
		t.Errorf("the history is %v, want %v", got, want)
	}
}

// captures are an order's payments, "id state", in the order of the provider's ids.
func (s *store) captures(t *testing.T, id domain.OrderID) []string {
	t.Helper()
	return testdb.Scan[[]string](t, s.DB, `SELECT coalesce(array_agg(provider_payment_id || ' ' || state ORDER BY provider_payment_id), '{}')
		FROM captures WHERE order_id = $1`, id)
}

// charged is how much the provider has taken, and refunded how much it has given back, over all.
func (s *store) charged(t *testing.T) int64 {
	return testdb.Scan[int64](t, s.DB, "SELECT coalesce(sum(amount_minor), 0)::bigint FROM ops.simulated_payments WHERE status = 'CHARGED'")
}

func (s *store) refunded(t *testing.T) int64 {
	return testdb.Scan[int64](t, s.DB, "SELECT coalesce(sum(amount_minor), 0)::bigint FROM ops.simulated_refunds")
}

func (s *store) count(t *testing.T, table string) int {
	return testdb.Scan[int](t, s.DB, "SELECT count(*) FROM "+table)
}

// payment is the provider's id of the payment of an order's first attempt.
func (s *store) payment(t *testing.T, id domain.OrderID) string {
	t.Helper()
	return testdb.Scan[string](t, s.DB, "SELECT payment_id FROM ops.simulated_payments WHERE reference = $1", id.String())
}

// tell delivers a webhook about an order, in euros.
func (s *store) tell(t *testing.T, event string, id domain.OrderID, kind domain.FactKind, payment, refund string, amount domain.Cents) {
	t.Helper()
	if err := s.Receive(t.Context(), webhook(event, id, kind, payment, refund, amount)); err != nil {
		t.Errorf("%s was not taken in: %v", event, err)
	}
}

func webhook(event string, id domain.OrderID, kind domain.FactKind, paymentID, refundID string, amount domain.Cents) payment.Event {
	return payment.Event{ID: event, Reference: id.String(), Fact: domain.Fact{
		Kind: kind, PaymentID: paymentID, RefundID: refundID, Amount: domain.Money{AmountMinor: amount, Currency: "EUR"},
	}}
}

func (s *store) reconcile(t *testing.T) ordering.Reconciled {
	t.Helper()
	done, err := s.Reconcile(t.Context(), 0)
	if err != nil {
		t.Fatalf("cannot reconcile: %v", err)
	}
	return done
}

// later moves the server's clock on.
func (s *store) later(d time.Duration) { s.ahead.Add(int64(d)) }

// healthy fails unless every invariant holds.
func (s *store) healthy(t *testing.T) {
	t.Helper()
	if broken := s.broken(t); len(broken) > 0 {
		t.Errorf("the doctor finds %q", broken)
	}
}

// broken are the invariants that do not hold.
func (s *store) broken(t *testing.T) (invariants []string) {
	t.Helper()
	report, err := doctor.Check(context.Background(), s.db, domain.TenantID{})
	if err != nil {
		t.Fatalf("the doctor cannot check: %v", err)
	}
	for _, v := range report.Violations {
		invariants = append(invariants, v.Invariant+": "+v.Message)
	}
	return invariants
}

// together calls f n times at once and waits.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// meanwhile runs f apart; what it returns waits for it.
func meanwhile(f func()) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	return func() { <-done }
}

func ptr[T any](v T) *T { return &v }

// codeOf is the code by which a caller knows an error; "" for none, INTERNAL for what is not meant
// for the caller.
func codeOf(err error) domain.Code {
	var refusal domain.UserError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &refusal):
		return refusal.GetCode()
	}
	return domain.CodeInternal
}

func wantCode(t *testing.T, err error, code domain.Code) {
	t.Helper()
	if got := codeOf(err); got != code {
		t.Errorf("got %q (%v), want %q", got, err, code)
	}
}
