package graph_test

import (
	"fmt"
	"testing"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/invoicing"
)

// tenant is a tenant with a token for each role and some rows. Ids are as the wire prints them.
type tenant struct {
	id                       domain.TenantID
	admin, service, customer string // tokens; the customer's is bound to customerID
	customerID, neighbourID  string // two customers
	seriesID, creditSeriesID string
	invoiceID                string // of customerID
	neighbourInvoiceID       string // of neighbourID
}

func (a *api) newTenant(t *testing.T, tokens *auth.Tokens, handle string) *tenant {
	t.Helper()
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("cannot make the tenant %s: %v", handle, err)
		}
	}
	made, _, err := a.service.CreateTenant(ctx, handle, "Tenant "+handle)
	check(err)
	out := &tenant{id: made.ID}
	admin := auth.Caller{TenantID: made.ID, Role: domain.RoleAdmin}
	newCustomer := func(name string) domain.CustomerID {
		c, err := a.service.CreateCustomer(ctx, admin, invoicing.CreateCustomerInput{Name: name, Currency: "EUR"})
		check(err)
		return c.Value.ID
	}
	newSeries := func(document string) (id domain.SeriesID) {
		check(a.db.Pool.QueryRow(ctx, `SELECT id FROM invoice_series WHERE tenant_id = $1 AND document = $2`, made.ID, document).Scan(&id))
		return id
	}
	customer, neighbour := newCustomer("Rook & Pawn"), newCustomer("Bishop Ltd")
	series := newSeries("INVOICE")
	newInvoice := func(customer domain.CustomerID) string {
		i, err := a.service.Allocate(ctx, admin, invoicing.AllocateInvoiceInput{
			SeriesID: series, CustomerID: customer, Currency: "EUR",
			Lines: []domain.InvoiceLineInput{{Description: "Chess set", Quantity: 2, UnitAmountMinor: 4950}},
		})
		check(err)
		return i.Value.ID.String()
	}
	token := func(role domain.Role, customer *domain.CustomerID) string {
		secret, _, err := tokens.Create(ctx, auth.NewToken{TenantID: made.ID, Role: role, CustomerID: customer})
		check(err)
		return secret
	}
	out.admin, out.service, out.customer = token(domain.RoleAdmin, nil), token(domain.RoleService, nil), token(domain.RoleCustomer, &customer)
	out.customerID, out.neighbourID = customer.String(), neighbour.String()
	out.seriesID, out.creditSeriesID = series.String(), newSeries("CREDIT_NOTE").String()
	out.invoiceID, out.neighbourInvoiceID = newInvoice(customer), newInvoice(neighbour)
	return out
}

// fill brings each list of the tenant to n rows.
func (a *api) fill(t *testing.T, of *tenant, n int) {
	t.Helper()
	caller := auth.Caller{TenantID: of.id, Role: domain.RoleAdmin}
	customer, err := domain.ParseID[domain.CustomerID](of.customerID)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if i < n-2 { // a tenant of the harness has two customers and two series
			if _, err := a.service.CreateCustomer(t.Context(), caller, invoicing.CreateCustomerInput{Name: fmt.Sprintf("Customer %d", i), Currency: "EUR"}); err != nil {
				t.Fatal(err)
			}
			if _, err := a.service.CreateSeries(t.Context(), caller, invoicing.CreateInvoiceSeriesInput{Code: fmt.Sprintf("S%d", i)}); err != nil {
				t.Fatal(err)
			}
		}
		if i > 0 { // and one invoice of this customer
			a.invoice(t, of, of.seriesID, customer, 100)
		}
	}
}

// invoice makes an invoice of one line.
func (a *api) invoice(t testing.TB, of *tenant, series string, customer domain.CustomerID, amount domain.Cents) {
	t.Helper()
	id, err := domain.ParseID[domain.SeriesID](series)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.service.Allocate(t.Context(), auth.Caller{TenantID: of.id, Role: domain.RoleAdmin}, invoicing.AllocateInvoiceInput{
		SeriesID: id, CustomerID: customer, Currency: "EUR", Lines: []domain.InvoiceLineInput{{Description: "Pawn", Quantity: 1, UnitAmountMinor: amount}},
	}); err != nil {
		t.Fatal(err)
	}
}

// numbered makes a series with a format, its counter standing before a number, and n invoices.
func (a *api) numbered(t *testing.T, code, format string, next int64, n int) (series string) {
	t.Helper()
	r := a.must(t, a.demo.admin, `mutation ($i: CreateInvoiceSeriesInput!) { createInvoiceSeries(input: $i) { series { id } userErrors { code } } }`,
		vars{"i": vars{"code": code, "format": format}})
	series = r.text(t, "createInvoiceSeries.series.id")
	id, err := domain.ParseID[domain.SeriesID](series)
	if err != nil {
		t.Fatal(err)
	}
	customer, err := domain.ParseID[domain.CustomerID](a.demo.customerID)
	if err != nil {
		t.Fatal(err)
	}
	a.db.Exec(t, `UPDATE series_counters SET next_number = $2 WHERE series_id = $1`, id, next)
	for range n {
		a.invoice(t, a.demo, series, customer, 100)
	}
	return series
}

// manyInvoices brings the tenant to 100 invoices of ten customers in three series, no two of one
// amount, and returns their ids.
func (a *api) manyInvoices(t *testing.T) []string {
	t.Helper()
	caller := auth.Caller{TenantID: a.demo.id, Role: domain.RoleAdmin}
	series := []string{a.demo.seriesID, a.numbered(t, "X", "{CODE}-{N}", 1, 0), a.numbered(t, "Y", "{CODE}-{N}", 1, 0)}
	var customers []domain.CustomerID
	for i := range 10 {
		c, err := a.service.CreateCustomer(t.Context(), caller, invoicing.CreateCustomerInput{Name: fmt.Sprintf("Customer %d", i), Currency: "EUR"})
		if err != nil {
			t.Fatal(err)
		}
		customers = append(customers, c.Value.ID)
	}
	for i := range 98 { // beside the two of the harness
		a.invoice(t, a.demo, series[i%3], customers[i%10], domain.Cents(i))
	}
	return a.must(t, a.demo.admin, `{ invoices(first: 100) { nodes { id } } }`, nil).list(t, "invoices.nodes", "id")
}
