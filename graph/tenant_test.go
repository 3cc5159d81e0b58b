package graph_test

import (
	"fmt"
	"testing"
	"time"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/ordering"
	"countersign/internal/payment"
	"countersign/internal/testdb"
)

// tenant is a tenant with a token for each role and some rows. Ids are as the wire prints them.
type tenant struct {
	id                       domain.TenantID
	admin, service, customer string // tokens; the customer's is bound to customerID
	customerID, neighbourID  string // two customers
	seriesID, creditSeriesID string
	invoiceID                string // of customerID
	neighbourInvoiceID       string // of neighbourID
	productID, retiredID     string // one for sale, one that is not any more
	productVersion           string // of the one for sale, as it was made
	orderID                  string // of customerID, paid, and paid once more, which is a refund due
	neighbourOrderID         string // of neighbourID, not paid: its payment was declined
	keyID, neighbourKeyID    string // of customerID and of neighbourID, in use
	settlementID             string // of customerID, of a revoked key that was not used
	neighbourSettlementID    string // of neighbourID, likewise
	neighbourInvoiceVersion  string // as it was made
	tokenID, spareTokenID    string // of tokens that nobody presents
	customerVersion          string // as it was made
	draftID                  string // of customerID; not from the start
	refundID                 string // of an order of customerID, lost long ago; not from the start
	monthlySeriesID          string // imported month by month; not from the start
}

// secondPayment is the provider's id of the payment of each tenant's order that is a refund due.
const secondPayment = "twice"

func (a *api) newTenant(t testing.TB, tokens *auth.Tokens, handle string) *tenant {
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
	spare := func() string {
		_, row, err := tokens.Create(ctx, auth.NewToken{TenantID: made.ID, Role: domain.RoleService})
		check(err)
		return row.ID.String()
	}
	out.tokenID, out.spareTokenID = spare(), spare()
	out.admin, out.service, out.customer = token(domain.RoleAdmin, nil), token(domain.RoleService, nil), token(domain.RoleCustomer, &customer)
	out.customerID, out.neighbourID = customer.String(), neighbour.String()
	out.seriesID, out.creditSeriesID = series.String(), newSeries("CREDIT_NOTE").String()
	out.invoiceID, out.neighbourInvoiceID = newInvoice(customer), newInvoice(neighbour)
	out.productID, out.retiredID = a.product(t, out, "set", 4950), a.product(t, out, "board", 2900)
	out.productVersion = domain.FormatTime(testdb.Scan[time.Time](t, a.db, `SELECT updated_at FROM products WHERE tenant_id = $1 AND sku = 'set'`, made.ID))
	a.db.Exec(t, `UPDATE products SET active = false WHERE tenant_id = $1 AND sku = 'board'`, made.ID)
	out.orderID = a.order(t, out, out.customerID, payment.SimOK, out.productID)
	a.db.Exec(t, `INSERT INTO captures (tenant_id, provider, provider_payment_id, order_id, amount_minor, currency, state, captured_at, updated_at)
		SELECT tenant_id, provider, $2, order_id, amount_minor, currency, 'REFUND_DUE', captured_at, updated_at FROM captures WHERE order_id = $1`,
		parse[domain.OrderID](t, out.orderID), secondPayment)
	a.db.Exec(t, `UPDATE orders SET attention = 'a payment is to be given back' WHERE id = $1`, parse[domain.OrderID](t, out.orderID))
	out.neighbourOrderID = a.order(t, out, out.neighbourID, payment.SimDeclined, out.productID)
	a.db.Exec(t, `UPDATE orders SET attention = 'the provider sent an event of an unknown type' WHERE id = $1`, parse[domain.OrderID](t, out.neighbourOrderID))
	out.neighbourInvoiceVersion = domain.FormatTime(testdb.Scan[time.Time](t, a.db, `SELECT updated_at FROM invoices WHERE tenant_id = $1 AND customer_id = $2`, made.ID, neighbour))
	out.customerVersion = domain.FormatTime(testdb.Scan[time.Time](t, a.db, `SELECT updated_at FROM customers WHERE id = $1`, customer))
	out.keyID, out.neighbourKeyID = a.key(t, out, out.customerID), a.key(t, out, out.neighbourID)
	out.settlementID = a.revoke(t, out, a.key(t, out, out.customerID))
	out.neighbourSettlementID = a.revoke(t, out, a.key(t, out, out.neighbourID))
	return out
}

// product makes a product whose stock is not counted.
func (a *api) product(t testing.TB, of *tenant, sku string, price domain.Cents) string {
	t.Helper()
	p, err := a.ordering.CreateProduct(t.Context(), auth.Caller{TenantID: of.id, Role: domain.RoleAdmin},
		ordering.CreateProductInput{SKU: sku, Name: "Chess " + sku, UnitPriceMinor: price, Currency: "EUR"})
	if err != nil {
		t.Fatal(err)
	}
	return p.Value.ID.String()
}

// order places an order of one each of some products, to be paid by a method.
func (a *api) order(t testing.TB, of *tenant, customer, method string, products ...string) string {
	t.Helper()
	in := ordering.PlaceOrderInput{IdempotencyKey: absent("key"), CustomerID: new(parse[domain.CustomerID](t, customer)), PaymentMethod: &method}
	for _, product := range products {
		in.Items = append(in.Items, domain.OrderItemInput{ProductID: parse[domain.ProductID](t, product), Quantity: 1})
	}
	o, err := a.ordering.Place(t.Context(), auth.Caller{TenantID: of.id, Role: domain.RoleAdmin}, in)
	if err != nil {
		t.Fatal(err)
	}
	return o.Value.ID.String()
}

// lostRefund has a new order's refund wait for its outcome since long ago.
func (a *api) lostRefund(t testing.TB, of *tenant) string {
	t.Helper()
	order, id := parse[domain.OrderID](t, a.order(t, of, of.customerID, payment.SimOK, of.productID)), domain.NewID[domain.RefundID]()
	a.db.Exec(t, `UPDATE orders SET refunded_minor = 100 WHERE id = $1`, order)
	a.db.Exec(t, `INSERT INTO refunds (tenant_id, id, order_id, provider, provider_payment_id, amount_minor, status, created_at, updated_at)
		SELECT tenant_id, $2, order_id, provider, provider_payment_id, 100, 'PENDING', '2020-01-01', '2020-01-01' FROM captures WHERE order_id = $1`, order, id)
	return id.String()
}

// parse reads a printed id.
func parse[ID domain.ID](t testing.TB, printed string) ID {
	t.Helper()
	id, err := domain.ParseID[ID](printed)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// fill brings each list of the tenant to n rows.
func (a *api) fill(t *testing.T, of *tenant, n int) {
	t.Helper()
	caller := auth.Caller{TenantID: of.id, Role: domain.RoleAdmin}
	customer := parse[domain.CustomerID](t, of.customerID)
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
		if i < n-1 { // and a product or two, and an order of the customer
			a.product(t, of, fmt.Sprintf("piece %d", i), 100)
			a.order(t, of, of.customerID, payment.SimDeclined, of.productID)
		}
		if i < n-1 { // and a settlement of the customer, and as many keys and more
			a.revoke(t, of, a.key(t, of, of.customerID))
		}
		a.receive(t, payment.Event{ID: fmt.Sprintf("evt-%04d", i), Reference: of.orderID, Fact: domain.Fact{Kind: domain.FactFailed, PaymentID: "late"}})
	}
	a.db.Exec(t, `UPDATE orders SET attention = 'x' WHERE customer_id = $1 AND attention IS NULL`, customer)
	of.monthlySeriesID = a.monthly(t, of, "MONTHLY", n).String()
	// Several come at one moment.
	a.db.Exec(t, `UPDATE ops.payment_events SET received_at = date_trunc('second', received_at)`)
}

// monthly makes a series that has left n months, in each of which a number was imported, as in the one
// that it is in.
func (a *api) monthly(t testing.TB, of *tenant, code string, n int) domain.SeriesID {
	t.Helper()
	caller := auth.Caller{TenantID: of.id, Role: domain.RoleAdmin}
	series, err := a.service.CreateSeries(t.Context(), caller, invoicing.CreateInvoiceSeriesInput{Code: code, Reset: new(domain.ResetMonthly)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n + 1 {
		_, err := a.service.ImportNumbers(t.Context(), caller, invoicing.ImportNumbersInput{
			SeriesID: series.Value.ID, Period: new(domain.NewDate(2010, time.January+time.Month(i), 1)),
			Numbers: &[]domain.ImportedNumber{{Number: new(int64(1))}}, Reason: fmt.Sprint("month ", i), DryRun: new(false),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return series.Value.ID
}

// receive takes a webhook in.
func (a *api) receive(t testing.TB, e payment.Event) {
	t.Helper()
	if err := a.ordering.Receive(t.Context(), e); err != nil {
		t.Fatal(err)
	}
}

// invoice makes an invoice of one line.
func (a *api) invoice(t testing.TB, of *tenant, series string, customer domain.CustomerID, amount domain.Cents) string {
	t.Helper()
	id := parse[domain.SeriesID](t, series)
	made, err := a.service.Allocate(t.Context(), auth.Caller{TenantID: of.id, Role: domain.RoleAdmin}, invoicing.AllocateInvoiceInput{
		SeriesID: id, CustomerID: customer, Currency: "EUR", Lines: []domain.InvoiceLineInput{{Description: "Pawn", Quantity: 1, UnitAmountMinor: amount}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return made.Value.ID.String()
}

// draft makes a draft of one line.
func (a *api) draft(t testing.TB, of *tenant, customer string) string {
	t.Helper()
	made, err := a.service.CreateDraft(t.Context(), auth.Caller{TenantID: of.id, Role: domain.RoleAdmin}, invoicing.CreateDraftInvoiceInput{
		CustomerID: parse[domain.CustomerID](t, customer), Currency: "EUR", Lines: []domain.InvoiceLineInput{{Description: "Pawn", Quantity: 1, UnitAmountMinor: 100}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return made.Value.ID.String()
}

// numbered makes a series with a format, its counter standing before a number, and n invoices.
func (a *api) numbered(t *testing.T, code, format string, next int64, n int) (series string) {
	t.Helper()
	r := a.must(t, a.demo.admin, `mutation ($i: CreateInvoiceSeriesInput!) { createInvoiceSeries(input: $i) { series { id } userErrors { code } } }`,
		vars{"i": vars{"code": code, "format": format}})
	series = r.text(t, "createInvoiceSeries.series.id")
	customer := parse[domain.CustomerID](t, a.demo.customerID)
	a.db.Exec(t, `UPDATE series_counters SET next_number = $2 WHERE series_id = $1`, parse[domain.SeriesID](t, series), next)
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

// manyOrders brings the tenant to 100 orders of ten customers, of one to three of six products, and
// 100 products; some are not paid, of some a part was given back. It returns their ids.
func (a *api) manyOrders(t *testing.T) []string {
	t.Helper()
	caller := auth.Caller{TenantID: a.demo.id, Role: domain.RoleAdmin}
	var customers []domain.CustomerID
	var products []domain.ProductID
	for i := range 10 {
		c, err := a.service.CreateCustomer(t.Context(), caller, invoicing.CreateCustomerInput{Name: fmt.Sprintf("Buyer %d", i), Currency: "EUR"})
		if err != nil {
			t.Fatal(err)
		}
		customers = append(customers, c.Value.ID)
	}
	for i := range 98 { // beside the two of the harness
		p, err := a.ordering.CreateProduct(t.Context(), caller, ordering.CreateProductInput{
			SKU: fmt.Sprintf("p%d", i), Name: fmt.Sprintf("Piece %d", i), UnitPriceMinor: 1, Currency: "EUR", Stock: new(int64(1_000_000 + i)),
		})
		if err != nil {
			t.Fatal(err)
		}
		products = append(products, p.Value.ID)
	}
	for i := range 98 {
		method := payment.SimOK
		if i%4 == 3 {
			method = payment.SimDeclined
		}
		in := ordering.PlaceOrderInput{IdempotencyKey: fmt.Sprint(i), CustomerID: &customers[i%10], PaymentMethod: &method}
		for j := range i%3 + 1 {
			in.Items = append(in.Items, domain.OrderItemInput{ProductID: products[(i+j)%6], Quantity: int32(10 + i)})
		}
		o, err := a.ordering.Place(t.Context(), caller, in)
		if err != nil {
			t.Fatal(err)
		}
		if i%5 == 0 && method == payment.SimOK {
			if _, err := a.ordering.Refund(t.Context(), caller, ordering.RefundOrderInput{OrderID: o.Value.ID, AmountMinor: new(domain.Cents(1 + i%7))}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return a.must(t, a.demo.admin, `{ orders(first: 100) { nodes { id } } }`, nil).list(t, "orders.nodes", "id")
}
