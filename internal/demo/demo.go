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
	"countersign/internal/ordering"
	"countersign/internal/paging"
	"countersign/internal/payment"
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

	ProductVersion time.Time
}

// Seed makes the demo tenant, once: asked again it finds what it made.
func Seed(ctx context.Context, s *invoicing.Service, o *ordering.Service) (d Demo, err error) {
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
	return d, nil
}

// Lines print the demo's ids.
func (d Demo) Lines() []string {
	return []string{
		fmt.Sprintf("tenant    %s (%s)", Handle, d.Tenant),
		fmt.Sprintf("customer  %s", d.Customer),
		fmt.Sprintf("product   %s", d.Product),
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

func tab(title, query string, input map[string]any) web.Tab {
	variables, err := json.MarshalIndent(map[string]any{"input": input}, "", "  ")
	if err != nil {
		panic(err) // the inputs are above
	}
	return web.Tab{Title: title, Query: query, Variables: string(variables)}
}
