package invoicing_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/internal/auth"
	"countersign/internal/doctor"
	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/testdb"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// shop is a tenant at work: a customer, a brand-new series, and the use cases on a database of its
// own. When its test ends, the doctor has the last word.
type shop struct {
	*testdb.DB
	*invoicing.Service
	db       *txn.DB
	caller   auth.Caller
	customer domain.CustomerID
	series   domain.SeriesID
}

func newShop(t testing.TB) *shop { return newShopAt(t, time.Now) }

// newShopAt is a shop whose server's clock is given.
func newShopAt(t testing.TB, clock func() time.Time) *shop {
	t.Helper()
	d := testdb.New(t)
	s := &shop{DB: d, db: txn.New(d.Pool, txn.Settings{Clock: clock})}
	s.Service = serviceOn(s.db)
	return s.open(t, "shop")
}

// afresh is another tenant's shop on the same database.
func (s *shop) afresh(t testing.TB, handle string) *shop {
	t.Helper()
	other := *s
	return other.open(t, handle)
}

// open makes the shop's tenant, customer and series.
func (s *shop) open(t testing.TB, handle string) *shop {
	t.Helper()
	tenant, _, err := s.CreateTenant(t.Context(), handle, "Shop")
	if err != nil {
		t.Fatal(err)
	}
	s.caller = auth.Caller{TenantID: tenant.ID, TokenID: domain.NewID[domain.TokenID](), Role: domain.RoleAdmin}
	customer, err := s.CreateCustomer(t.Context(), s.caller, invoicing.CreateCustomerInput{Name: "Rook & Pawn", Currency: "EUR"})
	if err != nil {
		t.Fatal(err)
	}
	s.customer = customer.Value.ID
	s.series = s.newSeries(t, "NEW", "{CODE}-{N:5}")
	return s
}

func (s *shop) newSeries(t testing.TB, code string, format domain.NumberFormat) domain.SeriesID {
	t.Helper()
	out, err := s.CreateSeries(t.Context(), s.caller, invoicing.CreateInvoiceSeriesInput{Code: code, Format: &format})
	if err != nil {
		t.Fatal(err)
	}
	return out.Value.ID
}

// secondServer is the same shop through another server: a pool and a clock of its own.
func (s *shop) secondServer(t *testing.T, clock func() time.Time) *shop {
	other := *s
	other.db = txn.New(s.NewPool(t, 0), txn.Settings{Clock: clock})
	other.Service = serviceOn(other.db)
	return &other
}

// input asks for an invoice of one line.
func (s *shop) input() invoicing.AllocateInvoiceInput {
	return invoicing.AllocateInvoiceInput{
		SeriesID: s.series, CustomerID: s.customer, Currency: "EUR",
		Lines: []domain.InvoiceLineInput{{Description: "Chess set", Quantity: 2, UnitAmountMinor: 4950}},
	}
}

// take allocates and expects it to work.
func (s *shop) take(t *testing.T, in invoicing.AllocateInvoiceInput) *sqlc.Invoice {
	t.Helper()
	out, err := s.Allocate(t.Context(), s.caller, in)
	if err != nil {
		t.Fatalf("allocation failed: %v", err)
	}
	return out.Value
}

// sequences are the numbers of the shop's series as the database has them, in order.
func (s *shop) sequences(t *testing.T) []int64 {
	return testdb.Scan[[]int64](t, s.DB, `SELECT coalesce(array_agg(sequence ORDER BY sequence), '{}') FROM invoices WHERE series_id = $1`, s.series)
}

// wantOneTo fails unless the series has the numbers 1 to n, each once.
func (s *shop) wantOneTo(t *testing.T, n int) {
	t.Helper()
	want := make([]int64, n)
	for i := range want {
		want[i] = int64(i + 1)
	}
	if got := s.sequences(t); !slices.Equal(got, want) {
		t.Errorf("the series has the numbers %v, want 1 to %d", got, n)
	}
}

// healthy fails unless every invariant holds.
func (s *shop) healthy(t *testing.T) {
	t.Helper()
	if broken := s.broken(t); len(broken) > 0 {
		t.Errorf("the doctor finds %q", broken)
	}
}

// broken are the invariants that do not hold, of whichever tenant.
func (s *shop) broken(t *testing.T) []string {
	t.Helper()
	return s.brokenOf(t, domain.TenantID{})
}

func (s *shop) brokenOf(t *testing.T, tenant domain.TenantID) (invariants []string) {
	t.Helper()
	report, err := doctor.Check(context.Background(), s.db, tenant)
	if err != nil {
		t.Fatalf("the doctor cannot check: %v", err)
	}
	for _, v := range report.Violations {
		invariants = append(invariants, v.Invariant)
	}
	return invariants
}

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

// said is what a caller is told of an error: what it is about, and the message.
func said(err error) string {
	var refusal domain.UserError
	if !errors.As(err, &refusal) {
		return fmt.Sprint(err)
	}
	return strings.Join(refusal.GetPath(), ".") + ": " + refusal.GetMessage()
}

func wantCode(t *testing.T, err error, code domain.Code) {
	t.Helper()
	if got := codeOf(err); got != code {
		t.Errorf("got %q (%v), want %q", got, err, code)
	}
}
