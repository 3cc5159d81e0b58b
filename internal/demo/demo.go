// Package demo makes the tenant that people explore with.
package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/metering"
	"countersign/internal/ordering"
	"countersign/internal/paging"
	"countersign/internal/payment"
	"countersign/sqlc"
	"countersign/web"
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

	ProductVersion, PersonVersion, SellerVersion time.Time

	Token    domain.TokenID               // one to rotate and to revoke; zero where nobody made it
	Ledger   domain.SeriesID              // a series to import into
	Keys     map[string]domain.APIKeyID   // one to try each mutation on
	People   map[string]domain.CustomerID // likewise
	Invoices map[string]*sqlc.Invoice     // likewise
}

// Seed makes the demo tenant, once: asked again it finds what it made.
func Seed(ctx context.Context, s *invoicing.Service, o *ordering.Service, m *metering.Service) (d Demo, err error) {
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
		"fulfill": payment.SimOK, "refund": payment.SimOK, "cancel": payment.SimDeclined, "retry": payment.SimDeclined,
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
	return d, d.seedUsage(ctx, caller, s, m)
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

// Tabs are the playground's: one for each mutation.
func (d Demo) Tabs() []web.Tab {
	return []web.Tab{
		tab("AllocateInvoice", `mutation AllocateInvoice($input: AllocateInvoiceInput!) {
  allocateInvoice(input: $input) {
    invoice {
      id
      number
      status
      issueDate
      total { formatted amountMinor }
      customer { name }
      lines { description quantity amount { formatted } }
    }
    replayed
    userErrors { code message path }
  }
}
`, map[string]any{
			"seriesId": d.Series, "customerId": d.Customer, "currency": "EUR",
			"lines": []any{map[string]any{"description": "Chess set", "quantity": 2, "unitAmountMinor": "4950"}},
		}),
		tab("PlaceOrder", `# The key stands for one order: run it again, and the same order comes back.
mutation PlaceOrder($input: PlaceOrderInput!) {
  placeOrder(input: $input) {
    order {
      id
      status
      total { formatted }
      items { name quantity amount { formatted } }
      payments { method status failure }
      history { event fromStatus toStatus at }
    }
    replayed
    userErrors { code message path }
  }
}
`, map[string]any{
			"idempotencyKey": "playground 1", "customerId": d.Customer, "paymentMethod": "sim_ok",
			"items": []any{map[string]any{"productId": d.Product, "quantity": 1}},
		}),
		tab("RevokeApiKey", `# Revoking again answers with the same settlements.
mutation RevokeApiKey($input: RevokeApiKeyInput!) {
  revokeApiKey(input: $input) {
    apiKey { id status revokedAt }
    settlement {
      period
      quantity
      amount
      outcome
      invoice { status total { formatted } lines { description quantity exactAmount } }
      receipt { way saw result }
    }
    userErrors { code message path }
  }
}
`, map[string]any{"apiKeyId": d.Keys["revoke"], "reason": "Rotated"}),
		tab("RecordUsage", `# An event counts once for ever: run it again, and it is a duplicate.
mutation RecordUsage($input: RecordUsageInput!) {
  recordUsage(input: $input) {
    accepted
    duplicates
    userErrors { code message path }
  }
}
`, map[string]any{"events": []any{map[string]any{
			"id": "playground 1", "apiKeyId": d.Keys["use"], "quantity": "58", "occurredAt": domain.FormatTime(time.Now().Truncate(24 * time.Hour)),
		}}}),
		tab("CreateApiKey", `mutation CreateApiKey($input: CreateApiKeyInput!) {
  createApiKey(input: $input) {
    apiKey { id name hint unitPrice status }
    secret
    userErrors { code message path }
  }
}
`, map[string]any{"customerId": d.Customer, "name": "Website", "unitPrice": "0.077"}),
		tab("GrantBillingExemption", `# A customer is exempt once: run it again, and the answer is ALREADY_EXEMPT.
mutation GrantBillingExemption($input: GrantBillingExemptionInput!) {
  grantBillingExemption(input: $input) {
    exemption { id reason grantedAt }
    userErrors { code message path }
  }
}
`, map[string]any{"customerId": d.People["exempt"], "reason": "A partner"}),
		tab("RemoveBillingExemption", `mutation RemoveBillingExemption($input: RemoveBillingExemptionInput!) {
  removeBillingExemption(input: $input) {
    customer { id exemption { id } }
    userErrors { code message path }
  }
}
`, map[string]any{"customerId": d.People["charge again"]}),
		invoiceMove("CreateDraftInvoice", "createDraftInvoice", map[string]any{"customerId": d.Customer, "currency": "EUR", "lines": taxedLines}),
		invoiceMove("UpdateDraftInvoice", "updateDraftInvoice", map[string]any{
			"invoiceId": d.Invoices["edit"].ID, "version": domain.FormatTime(d.Invoices["edit"].UpdatedAt.Time), "lines": taxedLines,
		}),
		invoiceMove("DeleteDraftInvoice", "deleteDraftInvoice", map[string]any{"invoiceId": d.Invoices["delete"].ID, "reason": "Not wanted any more"}),
		invoiceMove("FinalizeInvoice", "finalizeInvoice", map[string]any{"invoiceId": d.Invoices["finalize"].ID}),
		invoiceMove("RecordInvoicePayment", "recordInvoicePayment", map[string]any{"invoiceId": d.Invoices["pay"].ID, "amountMinor": "900", "reference": "Bank 17"}),
		tab("IssueCreditNote", `# Of an amount, of lines, or (neither) of all that is left.
mutation IssueCreditNote($input: IssueCreditNoteInput!) {
  issueCreditNote(input: $input) {
    creditNote { number total { formatted } refundDue { formatted } lines { description gross { formatted } } }
    invoice { number status amountDue { formatted } amountCredited { formatted } }
    replayed
    userErrors { code message path ... on CreditTooLargeError { creditLeft { formatted } } }
  }
}
`, map[string]any{"invoiceId": d.Invoices["credit"].ID, "amountMinor": "400", "reason": "A scratch"}),
		invoiceMove("WaiveInvoice", "waiveInvoice", map[string]any{
			"invoiceId": d.Invoices["waive"].ID, "version": domain.FormatTime(d.Invoices["waive"].UpdatedAt.Time), "reason": "Goodwill",
		}),
		invoiceMove("VoidInvoice", "voidInvoice", map[string]any{"invoiceId": d.Invoices["void"].ID, "reason": "Sent to the wrong customer"}),
		move("FulfillOrder", "fulfillOrder", map[string]any{"orderId": d.Orders["fulfill"]}),
		move("CancelOrder", "cancelOrder", map[string]any{"orderId": d.Orders["cancel"]}),
		move("RefundOrder", "refundOrder", map[string]any{"orderId": d.Orders["refund"], "amountMinor": "950"}),
		move("RetryPayment", "retryPayment", map[string]any{"orderId": d.Orders["retry"], "paymentMethod": "sim_ok"}),
		tab("CreateProduct", `# A SKU is taken once: run it again, and the answer is SKU_TAKEN.
mutation CreateProduct($input: CreateProductInput!) {
  createProduct(input: $input) {
    product { id sku unitPrice { formatted } stock version }
    replayed
    userErrors { code message path }
  }
}
`, map[string]any{"sku": "clock", "name": "Chess clock", "unitPriceMinor": "2900", "currency": "EUR", "stock": "10"}),
		tab("UpdateProduct", `# The version is the one that the change was decided on: take it from the query.
mutation UpdateProduct($input: UpdateProductInput!) {
  updateProduct(input: $input) {
    product { id name unitPrice { formatted } version }
    userErrors { code message path }
  }
}
`, map[string]any{"productId": d.Product, "version": domain.FormatTime(d.ProductVersion), "name": "Chess set, walnut"}),
		tab("CreateAccessToken", `# The secret is shown this once.
mutation CreateAccessToken($input: CreateAccessTokenInput!) {
  createAccessToken(input: $input) {
    accessToken { id name role scopes hint createdBy expiresAt }
    secret
    userErrors { code message path }
  }
}
`, map[string]any{"role": "SERVICE", "name": "Meter", "scopes": []string{"USAGE_WRITE"}, "expiresAt": domain.FormatTime(time.Now().Add(90 * 24 * time.Hour).Truncate(time.Hour))}),
		tab("RotateAccessToken", `# A token has one successor: run it again, and the same comes back, without its secret.
mutation RotateAccessToken($input: RotateAccessTokenInput!) {
  rotateAccessToken(input: $input) {
    accessToken { id scopes replaces expiresAt }
    secret
    replayed
    userErrors { code message path }
  }
}
`, map[string]any{"tokenId": d.Token, "graceSeconds": 3600}),
		tab("RevokeAccessToken", `mutation RevokeAccessToken($input: RevokeAccessTokenInput!) {
  revokeAccessToken(input: $input) {
    accessToken { id revokedAt history { event by at } }
    replayed
    userErrors { code message path }
  }
}
`, map[string]any{"tokenId": d.Token}),
		tab("CreateCustomer", `mutation CreateCustomer($input: CreateCustomerInput!) {
  createCustomer(input: $input) {
    customer { id name currency timeZone version }
    replayed
    userErrors { code message path }
  }
}
`, map[string]any{"name": "Bishop Ltd", "currency": "GBP", "timeZone": "Europe/London"}),
		tab("UpdateCustomer", `# Invoices that have a number keep the buyer as it was.
mutation UpdateCustomer($input: UpdateCustomerInput!) {
  updateCustomer(input: $input) {
    customer { id name address { line1 city country } taxIds { scheme value } version }
    replayed
    userErrors { code message path }
  }
}
`, map[string]any{"customerId": d.People["rename"], "version": domain.FormatTime(d.PersonVersion), "name": "Knight AG", "address": sellerAddress}),
		tab("UpdateSeller", `# What the tenant is on its next invoices.
mutation UpdateSeller($input: UpdateSellerInput!) {
  updateSeller(input: $input) {
    seller { name address { line1 city country } taxIds { scheme value } version }
    replayed
    userErrors { code message path }
  }
}
`, map[string]any{
			"version": domain.FormatTime(d.SellerVersion), "address": sellerAddress, "taxIds": []any{map[string]any{"scheme": "VAT", "value": "DE000000000"}},
		}),
		tab("CreateInvoiceSeries", `# A code is taken once: run it again, and the answer is CODE_TAKEN.
mutation CreateInvoiceSeries($input: CreateInvoiceSeriesInput!) {
  createInvoiceSeries(input: $input) {
    series { id code format reset timeZone maxNumber counter { nextNumber periodStart lastIssueDate } }
    replayed
    userErrors { code message path }
  }
}
`, map[string]any{"code": "WEB", "reset": "YEARLY", "format": "{CODE}/{YYYY}/{N:6}", "timeZone": "Europe/Berlin"}),
		tab("ImportNumbers", `# A dry run: with dryRun false the numbers are taken over, once.
mutation ImportNumbers($input: ImportNumbersInput!) {
  importNumbers(input: $input) {
    change {
      dryRun
      nextNumberBefore
      nextNumber
      gaps { first last }
      entries { first last state number reason }
      audit { clean last imported voidedElsewhere skipped }
    }
    replayed
    userErrors { code message path ... on NumbersUnexplainedError { gaps { first last } } }
  }
}
`, map[string]any{
			"seriesId": d.Ledger, "reason": "From the old system", "dryRun": true,
			"csv": "number,last_number,status,reason\n1,4710,SKIPPED,In the archive\n4711,4790,ISSUED,\n4791,,VOID,Sent twice\n",
		}),
		tab("ResyncSeries", `# A counter that is not behind what is numbered stays where it is.
mutation ResyncSeries($input: ResyncSeriesInput!) {
  resyncSeries(input: $input) {
    change { dryRun nextNumberBefore nextNumber gaps { first last } audit { clean last } }
    replayed
    userErrors { code message path ... on NumbersUnexplainedError { gaps { first last } } }
  }
}
`, map[string]any{"seriesId": d.Series, "reason": "Restored from a backup", "dryRun": true}),
	}
}

// What the tabs of drafts and parties begin with.
var (
	taxedLines = []any{
		map[string]any{"description": "Chess set", "quantity": 1, "unitAmountMinor": "4950", "taxRate": "19"},
		map[string]any{"description": "Book", "quantity": 1, "unitAmountMinor": "2140", "taxRate": "7", "taxTreatment": "INCLUSIVE"},
	}
	sellerAddress = map[string]any{"line1": "Turmweg 1", "postalCode": "10115", "city": "Berlin", "country": "DE"}
)

// move is a tab that moves an order.
func move(title, field string, input map[string]any) web.Tab {
	return tab(title, fmt.Sprintf(`mutation %s($input: %sInput!) {
  %s(input: $input) {
    order { id status version refunded { formatted } history { event fromStatus toStatus } }
    userErrors { code message path ... on IllegalTransitionError { from to } }
  }
}
`, title, title, field), input)
}

// invoiceMove is a tab that moves an invoice.
func invoiceMove(title, field string, input map[string]any) web.Tab {
	return tab(title, fmt.Sprintf(`mutation %s($input: %sInput!) {
  %s(input: $input) {
    invoice { id number status amountDue { formatted } version history { event fromStatus toStatus detail } }
    userErrors { code message path ... on IllegalInvoiceTransitionError { from to } }
  }
}
`, title, title, field), input)
}

func tab(title, query string, input map[string]any) web.Tab {
	variables, err := json.MarshalIndent(map[string]any{"input": input}, "", "  ")
	if err != nil {
		panic(err) // the inputs are above
	}
	return web.Tab{Title: title, Query: query, Variables: string(variables)}
}
