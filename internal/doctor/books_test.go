package doctor_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"countersign/internal/auth"
	"countersign/internal/doctor"
	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/metering"
	"countersign/internal/ordering"
	"countersign/internal/payment"
	"countersign/internal/testdb"
	"countersign/internal/txn"
)

func TestMain(m *testing.M) { os.Exit(testdb.Main(m)) }

// practice is a database whose tenants the doctor looks at.
type practice struct {
	d       *testdb.DB
	db      *txn.DB
	service *invoicing.Service
	orders  *ordering.Service
	usage   *metering.Service
}

func newPractice(t *testing.T) *practice {
	t.Helper()
	d := testdb.New(t)
	db := txn.New(d.Pool, txn.Settings{})
	return &practice{d, db, invoicing.New(db), ordering.New(db, payment.NewSimulated(db, 0, nil)), metering.New(db)}
}

// books are a tenant's: a customer, a series A with three invoices of two lines, a series B with
// one and the imported numbers 2 to 7 (5 to 7 skipped), and a series C with none; and the orders that addOrders makes.
type books struct {
	tenant domain.TenantID
	caller auth.Caller
	ids    pgx.NamedArgs     // by the names that the cases use: cus, serA, a1, …
	names  map[string]string // of printed ids
}

func (p *practice) newBooks(t *testing.T, handle string) *books {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	tenant, _, err := p.service.CreateTenant(ctx, handle, handle)
	must(err)
	b := &books{tenant.ID, auth.Caller{TenantID: tenant.ID, Role: domain.RoleAdmin}, pgx.NamedArgs{}, map[string]string{}}
	customer, err := p.service.CreateCustomer(ctx, b.caller, invoicing.CreateCustomerInput{Name: "Rook & Pawn", Currency: "EUR"})
	must(err)
	b.keep("cus", customer.Value.ID)
	for _, s := range []struct {
		code     string
		invoices []string
	}{{"A", []string{"a1", "a2", "a3"}}, {"B", []string{"b1"}}, {"C", nil}} {
		series, err := p.service.CreateSeries(ctx, b.caller, invoicing.CreateInvoiceSeriesInput{Code: s.code})
		must(err)
		b.keep("ser"+s.code, series.Value.ID)
		for _, name := range s.invoices {
			invoice, err := p.service.Allocate(ctx, b.caller, b.input(series.Value.ID))
			must(err)
			b.keep(name, invoice.Value.ID)
		}
	}
	skipped := domain.ImportedSkipped
	_, err = p.service.ImportNumbers(ctx, b.caller, invoicing.ImportNumbersInput{
		SeriesID: b.ids["serB"].(domain.SeriesID), Reason: "from the old system", DryRun: new(false),
		Numbers: &[]domain.ImportedNumber{{Number: new(int64(2)), LastNumber: new(int64(4))}, {Number: new(int64(5)), LastNumber: new(int64(7)), Status: &skipped}},
	})
	must(err)
	p.addOrders(t, b)
	return b
}

// keep gives an id a name.
func (b *books) keep(name string, id fmt.Stringer) { b.ids[name], b.names[id.String()] = id, name }

// input asks for another invoice of a series.
func (b *books) input(series domain.SeriesID) invoicing.AllocateInvoiceInput {
	return invoicing.AllocateInvoiceInput{
		SeriesID: series, CustomerID: b.ids["cus"].(domain.CustomerID), Currency: "EUR",
		Lines: []domain.InvoiceLineInput{
			{Description: "Chess set", Quantity: 2, UnitAmountMinor: 4950},
			{Description: "Discount", Quantity: 1, UnitAmountMinor: -900},
		},
	}
}

// check asks the doctor about one tenant, or (the zero id) about all.
func (p *practice) check(t *testing.T, tenant domain.TenantID) *doctor.Report {
	t.Helper()
	report, err := doctor.Check(t.Context(), p.db, tenant)
	if err != nil {
		t.Fatal(err)
	}
	if report.Healthy() != (len(report.Violations) == 0) {
		t.Errorf("healthy is %v, with the violations %v", report.Healthy(), report.Violations)
	}
	return report
}

// findings are a report's violations, in terms of the books: "NUMBER_UNIQUE a2 a3".
func (b *books) findings(t *testing.T, r *doctor.Report) []string {
	t.Helper()
	var found []string
	for _, v := range r.Violations {
		if v.TenantID != b.tenant {
			t.Errorf("%s is told of the tenant %s, not %s", v.Invariant, v.TenantID, b.tenant)
		}
		if v.Message == "" || strings.ContainsAny(v.Message, "\n%") {
			t.Errorf("%s says %q", v.Invariant, v.Message)
		}
		line := v.Invariant
		for _, id := range v.IDs {
			name, known := b.names[id]
			if !known {
				t.Errorf("%s names %s, which is not in the books", v.Invariant, id)
			}
			line += " " + name
		}
		found = append(found, line)
	}
	slices.Sort(found)
	return found
}
