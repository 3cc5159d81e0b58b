package metering_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign/internal/auth"
	"countersign/internal/database"
	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/metering"
	"countersign/internal/testdb"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// meter is a tenant whose customers use API keys: one customer from the start, on a database of
// its own, with a clock that stands until it is set.
type meter struct {
	*testdb.DB
	*metering.Service
	db       *txn.DB
	clock    *clock
	caller   auth.Caller
	customer domain.CustomerID
	events   *atomic.Int64 // makes event ids
	owner    *owner
}

// clock is what every server of a test reads.
type clock struct{ micros atomic.Int64 }

func (c *clock) now() time.Time      { return time.UnixMicro(c.micros.Load()).UTC() }
func (c *clock) set(at time.Time)    { c.micros.Store(at.UnixMicro()) }
func (c *clock) add(d time.Duration) { c.micros.Add(d.Microseconds()) }

// The month that tests are about, when not told otherwise, and a moment in it.
var (
	june    = domain.MonthOf(midJune, time.UTC)
	midJune = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)
	inJuly  = time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
)

func newMeter(t *testing.T) *meter {
	t.Helper()
	m := &meter{DB: testdb.New(t), clock: &clock{}, events: &atomic.Int64{}}
	m.owner = &owner{conn: m.Owner(t)}
	m.clock.set(midJune)
	m.db = txn.New(m.Pool, txn.Settings{Clock: m.clock.now})
	m.Service = metering.New(m.db)
	return m.afresh(t)
}

// afresh is a tenant of its own in the same database, for cases that come one after another.
func (m *meter) afresh(t *testing.T) *meter {
	t.Helper()
	other := *m
	tenant, _, err := invoicing.New(m.db).CreateTenant(t.Context(), fmt.Sprintf("meter-%d", m.events.Add(1)), "Meter")
	check(t, err)
	other.caller = auth.Caller{TenantID: tenant.ID, TokenID: domain.NewID[domain.TokenID](), Role: domain.RoleAdmin}
	other.customer = other.customerIn(t, "UTC")
	return &other
}

func (m *meter) customerIn(t *testing.T, zone string) domain.CustomerID {
	t.Helper()
	out, err := invoicing.New(m.db).CreateCustomer(t.Context(), m.caller,
		invoicing.CreateCustomerInput{Name: "Rook & Pawn", Currency: "EUR", TimeZone: &zone})
	check(t, err)
	return out.Value.ID
}

// another is another server of the same tenant, with a pool of its own that no gate holds.
func (m *meter) another(t *testing.T, size int32) *meter {
	t.Helper()
	pool, err := database.Open(t.Context(), m.URL, database.Options{MaxConns: size})
	check(t, err)
	t.Cleanup(pool.Close)
	return m.on(txn.New(pool, txn.Settings{Clock: m.clock.now, AcquireTimeout: 20 * time.Second}))
}

// on is the same tenant through another database handle.
func (m *meter) on(db *txn.DB) *meter {
	other := *m
	other.db, other.Service = db, metering.New(db)
	return &other
}

// key makes a key of the customer, at a price in minor units.
func (m *meter) key(t *testing.T, price string) domain.APIKeyID {
	t.Helper()
	return m.keyOf(t, m.customer, price)
}

func (m *meter) keyOf(t *testing.T, customer domain.CustomerID, price string) domain.APIKeyID {
	t.Helper()
	out, err := m.CreateKey(t.Context(), m.caller, metering.CreateAPIKeyInput{CustomerID: customer, Name: "key", UnitPrice: decimal(t, price)})
	check(t, err)
	return out.Value.ID
}

// used is a key of the customer that was used n times now.
func (m *meter) used(t *testing.T, price string, n int64) domain.APIKeyID {
	t.Helper()
	key := m.key(t, price)
	m.use(t, key, n)
	return key
}

// event is n uses of a key, now, under an id of their own.
func (m *meter) event(key domain.APIKeyID, n int64) metering.UsageEventInput {
	return metering.UsageEventInput{ID: fmt.Sprintf("event %d", m.events.Add(1)), APIKeyID: key, Quantity: n, OccurredAt: m.clock.now()}
}

// use records n uses of a key, and expects that they are accepted.
func (m *meter) use(t *testing.T, key domain.APIKeyID, n int64) {
	t.Helper()
	m.useAt(t, key, n, m.clock.now())
}

func (m *meter) useAt(t *testing.T, key domain.APIKeyID, n int64, at time.Time) {
	t.Helper()
	e := m.event(key, n)
	e.OccurredAt = at
	if r := m.record(t, e); r.Accepted != 1 {
		t.Fatalf("%d uses at %v were not accepted: %v", n, at, r.Refused)
	}
}

func (m *meter) record(t *testing.T, events ...metering.UsageEventInput) metering.Recorded {
	t.Helper()
	out, err := m.RecordUsage(context.Background(), m.caller, metering.RecordUsageInput{Events: events})
	check(t, err)
	return out.Value
}

// revoke revokes a key and expects that it works.
func (m *meter) revoke(t *testing.T, key domain.APIKeyID) metering.Revoked {
	t.Helper()
	out, err := m.Revoke(context.Background(), m.caller, metering.RevokeAPIKeyInput{APIKeyID: key})
	check(t, err)
	return out.Value
}

// pay pays what is due on an invoice now.
func (m *meter) pay(t *testing.T, invoice *sqlc.Invoice) *sqlc.Invoice {
	t.Helper()
	out, err := m.Pay(context.Background(), m.caller, payment(invoice))
	check(t, err)
	return out.Value
}

// payment is of what an invoice says is due.
func payment(invoice *sqlc.Invoice) metering.RecordInvoicePaymentInput {
	return metering.RecordInvoicePaymentInput{InvoiceID: invoice.ID, AmountMinor: invoice.AmountDue().AmountMinor, Reference: "transfer"}
}

func (m *meter) waive(t *testing.T, invoice *sqlc.Invoice) {
	t.Helper()
	_, err := m.Waive(context.Background(), m.caller, metering.WaiveInvoiceInput{InvoiceID: invoice.ID, Version: invoice.UpdatedAt, Reason: "goodwill"})
	check(t, err)
}

func (m *meter) void(t *testing.T, invoice *sqlc.Invoice) {
	t.Helper()
	_, err := m.Void(context.Background(), m.caller, metering.VoidInvoiceInput{InvoiceID: invoice.ID, Reason: "wrong"})
	check(t, err)
}

func (m *meter) exempt(t *testing.T) {
	t.Helper()
	_, err := m.GrantExemption(context.Background(), m.caller, metering.GrantBillingExemptionInput{CustomerID: m.customer, Reason: "a school"})
	check(t, err)
}

func (m *meter) charge(t *testing.T) {
	t.Helper()
	_, err := m.RemoveExemption(context.Background(), m.caller, metering.RemoveBillingExemptionInput{CustomerID: m.customer})
	check(t, err)
}

// close closes the customer's month and expects that it works.
func (m *meter) close(t *testing.T, month domain.Month) metering.Closed {
	t.Helper()
	closed, err := m.CloseMonth(context.Background(), m.caller.TenantID, m.customer, month)
	check(t, err)
	return closed
}

// settle runs the job once, on whatever has been left, however young.
func (m *meter) settle(t *testing.T) metering.Settled {
	t.Helper()
	r, err := m.Settle(context.Background(), 0)
	check(t, err)
	return r
}

// leavePending revokes a key on a server that has no patience, while somebody holds the month: the
// usage is settled, and the settlement left for the job.
func (m *meter) leavePending(t *testing.T, key domain.APIKeyID) domain.SettlementID {
	t.Helper()
	holder, err := m.Owner(t).Begin(t.Context())
	check(t, err)
	_, err = holder.Exec(t.Context(), "SELECT FROM billing_periods FOR NO KEY UPDATE")
	check(t, err)
	u, err := url.Parse(m.URL)
	check(t, err)
	query := u.Query()
	query.Set("lock_timeout", "50ms")
	u.RawQuery = query.Encode()
	out := m.on(txn.New(m.PoolAt(t, u.String(), 3), txn.Settings{Clock: m.clock.now})).revoke(t, key)
	check(t, holder.Rollback(context.Background()))
	if out.Settlement.Outcome != domain.SettlementPending {
		t.Fatalf("the settlement is %s", out.Settlement.Outcome)
	}
	return out.Settlement.ID
}

// before runs act once: the first time that the server is about to send the query. The test fails
// if it never does.
func (m *meter) before(t *testing.T, query string, act func()) {
	t.Helper()
	var once sync.Once
	var acted atomic.Bool
	m.Before(query, func(context.Context) {
		once.Do(func() {
			act()
			acted.Store(true)
		})
	})
	t.Cleanup(func() {
		m.Before(query, nil)
		if !acted.Load() {
			t.Errorf("the server never sent %s: nothing is proved", query)
		}
	})
}

// together runs fn n times at once and waits for all.
func together(n int, fn func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			fn(i)
		})
	}
	close(start)
	wg.Wait()
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func decimal(t testing.TB, s string) (d domain.Decimal) {
	t.Helper()
	check(t, d.UnmarshalGQL(s))
	return d
}

// refusal is an error as its caller knows it: "KEY_REVOKED input.events.0.apiKeyId"; "" for none.
func refusal(err error) string {
	var user domain.UserError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &user):
		return strings.TrimSpace(string(user.GetCode()) + " " + strings.Join(user.GetPath(), "."))
	}
	return "INTERNAL"
}

func wantRefusal(t testing.TB, err error, want string) {
	t.Helper()
	if got := refusal(err); got != want {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
}
