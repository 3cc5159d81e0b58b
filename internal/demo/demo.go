// Package demo makes the tenant that people explore with.
package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/metering"
	"countersign/internal/ordering"
	"countersign/internal/paging"
	"countersign/internal/payment"
	"countersign/internal/txn"
	"countersign/sqlc"
)

// Handle is the demo tenant's.
const Handle = "demo"

// Demo is the demo tenant's data.
type Demo struct {
	Tenant   domain.TenantID
	Customer domain.CustomerID
	Series   domain.SeriesID
	Product  domain.ProductID
	Orders   map[string]domain.OrderID // one to try each move on

	SecondPayment string          // the provider's id of one that an order was paid too much
	LostRefund    domain.RefundID // one whose outcome nobody tells

	ProductVersion, PersonVersion, SellerVersion time.Time

	Token    domain.TokenID               // one to rotate and to revoke; zero where nobody made it
	Ledger   domain.SeriesID              // a series to import into
	Keys     map[string]domain.APIKeyID   // one to try each mutation on
	People   map[string]domain.CustomerID // likewise
	Invoices map[string]*sqlc.Invoice     // likewise
}

// Seed makes the demo tenant, once: asked again it finds what it made.
func Seed(ctx context.Context, db *txn.DB, s *invoicing.Service, o *ordering.Service, m *metering.Service, p payment.Provider) (d Demo, err error) {
	tenant, _, err := s.CreateTenant(ctx, Handle, "Demo")
	if err != nil {
		return d, err
	}
	caller := auth.Caller{TenantID: tenant.ID, Role: domain.RoleAdmin}
	key, email, zone := "demo-customer", "billing@rook.example", "Europe/Berlin"
	customer, err := s.CreateCustomer(ctx, caller, invoicing.CreateCustomerInput{
		Name: "Rook & Pawn", Email: &email, Currency: "EUR", TimeZone: &zone, IdempotencyKey: &key,
	})
	if err != nil {
		return d, err
	}
	highest := domain.SeriesID{}
	for i := range highest {
		highest[i] = 0xff
	}
	series, err := s.ListSeries(ctx, caller, paging.Request[domain.SeriesID]{Before: highest, Size: 1})
	if err != nil {
		return d, err
	}
	productKey := "demo-product"
	product, err := o.CreateProduct(ctx, caller, ordering.CreateProductInput{
		SKU: "chess-set", Name: "Chess set", UnitPriceMinor: 4950, Currency: "EUR", IdempotencyKey: &productKey,
	})
	if err != nil {
		return d, err
	}
	d = Demo{
		Tenant: tenant.ID, Customer: customer.Value.ID, Series: series.Rows[0].ID, Product: product.Value.ID,
		Orders: map[string]domain.OrderID{}, ProductVersion: product.Value.UpdatedAt.Time,
	}
	for name, method := range map[string]string{
		"fulfill": payment.SimOK, "refund": payment.SimOK, "return": payment.SimOK, "clear": payment.SimOK, "cancel": payment.SimDeclined, "retry": payment.SimDeclined,
	} {
		order, err := o.Place(ctx, caller, ordering.PlaceOrderInput{
			IdempotencyKey: "demo to " + name, CustomerID: &d.Customer, PaymentMethod: &method,
			Items: []domain.OrderItemInput{{ProductID: d.Product, Quantity: 1}},
		})
		if err != nil {
			return d, err
		}
		d.Orders[name] = order.Value.ID
	}
	if err := d.seedAttention(ctx, o, p); err != nil {
		return d, err
	}
	past := *db
	past.Clock = func() time.Time { return db.Clock().Add(-48 * time.Hour) }
	if err := d.seedLostRefund(ctx, caller, ordering.New(&past, silent{p})); err != nil {
		return d, err
	}
	return d, d.seedUsage(ctx, caller, s, m)
}

// seedAttention has one order paid a second time, and reports of another what nobody understands.
func (d *Demo) seedAttention(ctx context.Context, o *ordering.Service, p payment.Provider) error {
	order, price := d.Orders["return"].String(), domain.Money{AmountMinor: 4950, Currency: "EUR"}
	second, err := p.Charge(ctx, payment.Charge{Key: "demo to return", Reference: order, Method: payment.SimOK, Amount: price})
	if err != nil {
		return err
	}
	d.SecondPayment = second.ID
	paid := domain.Fact{Kind: domain.FactPaid, PaymentID: second.ID, Amount: second.Amount}
	if err := o.Receive(ctx, payment.Event{ID: "demo to return", Reference: order, Fact: paid}); err != nil {
		return err
	}
	disputed := domain.Fact{Kind: "payment.disputed", PaymentID: "demo", Amount: price}
	return o.Receive(ctx, payment.Event{ID: "demo to clear", Reference: d.Orders["clear"].String(), Fact: disputed})
}

// silent is a provider of another name that never says what became of a refund, so that nobody else asks.
type silent struct{ payment.Provider }

func (silent) Name() string { return "silent" }

func (silent) Refund(context.Context, payment.Refund) (string, error) {
	return "", errors.New("no answer")
}

// seedLostRefund has a refund whose outcome a person has to find out.
func (d *Demo) seedLostRefund(ctx context.Context, caller auth.Caller, o *ordering.Service) error {
	key, amount := "demo to settle", domain.Cents(950)
	order, err := o.Place(ctx, caller, ordering.PlaceOrderInput{
		IdempotencyKey: key, CustomerID: &d.Customer, Items: []domain.OrderItemInput{{ProductID: d.Product, Quantity: 1}},
	})
	if err != nil {
		return err
	}
	if _, err := o.Refund(ctx, caller, ordering.RefundOrderInput{OrderID: order.Value.ID, AmountMinor: &amount, IdempotencyKey: &key}); err != nil {
		return err
	}
	refunds, err := o.RefundsOf(ctx, caller, []*sqlc.Order{order.Value})
	if err == nil {
		d.LostRefund = refunds[0][0].ID
	}
	return err
}

// seedUsage makes keys, customers and invoices for the mutations of metering.
func (d *Demo) seedUsage(ctx context.Context, caller auth.Caller, s *invoicing.Service, m *metering.Service) error {
	d.Keys, d.People, d.Invoices = map[string]domain.APIKeyID{}, map[string]domain.CustomerID{}, map[string]*sqlc.Invoice{}
	var price domain.Decimal
	if err := price.UnmarshalGQL("0.077"); err != nil {
		return err
	}
	for _, name := range []string{"use", "revoke"} {
		key := "demo to " + name
		out, err := m.CreateKey(ctx, caller, metering.CreateAPIKeyInput{CustomerID: d.Customer, Name: name, UnitPrice: price, IdempotencyKey: &key})
		if err != nil {
			return err
		}
		d.Keys[name] = out.Value.ID
	}
	if _, err := m.RecordUsage(ctx, caller, metering.RecordUsageInput{Events: []metering.UsageEventInput{
		{ID: "demo usage", APIKeyID: d.Keys["revoke"], Quantity: 1300, OccurredAt: time.Now().Truncate(24 * time.Hour)},
	}}); err != nil {
		return err
	}
	for _, name := range []string{"exempt", "charge again"} {
		key := "demo to " + name
		out, err := s.CreateCustomer(ctx, caller, invoicing.CreateCustomerInput{Name: "Customer to " + name, Currency: "EUR", IdempotencyKey: &key})
		if err != nil {
			return err
		}
		d.People[name] = out.Value.ID
	}
	key := "demo exemption"
	if _, err := m.GrantExemption(ctx, caller, metering.GrantBillingExemptionInput{CustomerID: d.People["charge again"], Reason: "A trial", IdempotencyKey: &key}); err != nil {
		return err
	}
	seriesKey := "demo series"
	series, err := s.CreateSeries(ctx, caller, invoicing.CreateInvoiceSeriesInput{Code: "DEMO", IdempotencyKey: &seriesKey})
	if err != nil {
		return err
	}
	if err := seedSeries(ctx, caller, s); err != nil {
		return err
	}
	if err := d.seedDrafts(ctx, caller, s); err != nil {
		return err
	}
	ledgerKey := "demo ledger"
	ledger, err := s.CreateSeries(ctx, caller, invoicing.CreateInvoiceSeriesInput{Code: "OLD", IdempotencyKey: &ledgerKey})
	if err != nil {
		return err
	}
	d.Ledger = ledger.Value.ID
	for _, name := range []string{"pay", "waive", "void", "credit"} {
		key := "demo to " + name
		out, err := s.Allocate(ctx, caller, invoicing.AllocateInvoiceInput{
			SeriesID: series.Value.ID, CustomerID: d.Customer, Currency: "EUR", IdempotencyKey: &key,
			Lines: []domain.InvoiceLineInput{{Description: "Chess board", Quantity: 1, UnitAmountMinor: 1900}},
		})
		if err != nil {
			return err
		}
		d.Invoices[name] = out.Value
	}
	return nil
}

// seedSeries makes a series by India's law and one of a fiscal year, to look at.
func seedSeries(ctx context.Context, caller auth.Caller, s *invoicing.Service) error {
	india, fiscal, july := domain.PresetIndia, domain.ResetFiscalYearly, int32(7)
	for _, in := range []invoicing.CreateInvoiceSeriesInput{
		{Code: "IN", Preset: &india},
		{Code: "FY", Reset: &fiscal, FiscalYearStartMonth: &july},
	} {
		key := "demo series " + in.Code
		in.IdempotencyKey = &key
		if _, err := s.CreateSeries(ctx, caller, in); err != nil {
			return err
		}
	}
	return nil
}

// seedDrafts makes drafts, and what else has a version, for the mutations of an invoice's life.
func (d *Demo) seedDrafts(ctx context.Context, caller auth.Caller, s *invoicing.Service) error {
	for _, name := range []string{"edit", "delete", "finalize"} {
		key := "demo to " + name
		out, err := s.CreateDraft(ctx, caller, invoicing.CreateDraftInvoiceInput{
			CustomerID: d.Customer, Currency: "EUR", IdempotencyKey: &key,
			Lines: []domain.InvoiceLineInput{{Description: "Chess board", Quantity: 1, UnitAmountMinor: 1900}},
		})
		if err != nil {
			return err
		}
		d.Invoices[name] = out.Value
	}
	rename, err := s.CreateCustomer(ctx, caller, invoicing.CreateCustomerInput{Name: "Customer to rename", Currency: "EUR", IdempotencyKey: new("demo to rename")})
	if err != nil {
		return err
	}
	d.People["rename"], d.PersonVersion = rename.Value.ID, rename.Value.UpdatedAt.Time
	seller, err := s.Seller(ctx, caller)
	if err != nil {
		return err
	}
	d.SellerVersion = seller.UpdatedAt.Time
	return nil
}

// Lines print the demo's ids.
func (d Demo) Lines() []string {
	return []string{
		fmt.Sprintf("tenant    %s (%s)", Handle, d.Tenant),
		fmt.Sprintf("customer  %s", d.Customer),
		fmt.Sprintf("product   %s", d.Product),
		fmt.Sprintf("key       %s", d.Keys["revoke"]),
		fmt.Sprintf("series    %s (INV)", d.Series),
	}
}
