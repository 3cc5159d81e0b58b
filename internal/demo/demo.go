// Package demo makes the tenant that people explore with.
package demo

import (
	"context"
	"encoding/json"
	"fmt"

	"countersign/internal/auth"
	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/paging"
	"countersign/web"
)

// Handle is the demo tenant's.
const Handle = "demo"

// Demo is the demo tenant's data.
type Demo struct {
	Tenant   domain.TenantID
	Customer domain.CustomerID
	Series   domain.SeriesID
}

// Seed makes the demo tenant, once: asked again it finds what it made.
func Seed(ctx context.Context, s *invoicing.Service) (d Demo, err error) {
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
	return Demo{Tenant: tenant.ID, Customer: customer.Value.ID, Series: series.Rows[0].ID}, nil
}

// Lines print the demo's ids.
func (d Demo) Lines() []string {
	return []string{
		fmt.Sprintf("tenant    %s (%s)", Handle, d.Tenant),
		fmt.Sprintf("customer  %s", d.Customer),
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
		tab("CreateCustomer", `mutation CreateCustomer($input: CreateCustomerInput!) {
  createCustomer(input: $input) {
    customer { id name currency timeZone version }
    replayed
    userErrors { code message path }
  }
}
`, map[string]any{"name": "Bishop Ltd", "currency": "GBP", "timeZone": "Europe/London"}),
		tab("CreateInvoiceSeries", `# A code is taken once: run it again, and the answer is CODE_TAKEN.
mutation CreateInvoiceSeries($input: CreateInvoiceSeriesInput!) {
  createInvoiceSeries(input: $input) {
    series { id code format timeZone }
    replayed
    userErrors { code message path }
  }
}
`, map[string]any{"code": "WEB", "format": "{CODE}/{YYYY}/{N:6}", "timeZone": "Europe/Berlin"}),
	}
}

func tab(title, query string, input map[string]any) web.Tab {
	variables, err := json.MarshalIndent(map[string]any{"input": input}, "", "  ")
	if err != nil {
		panic(err) // the inputs are above
	}
	return web.Tab{Title: title, Query: query, Variables: string(variables)}
}
