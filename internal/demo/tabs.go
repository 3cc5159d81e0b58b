package demo

import (
	"encoding/json"
	"fmt"
	"time"

	"countersign/internal/domain"
	"countersign/web"
)

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
		move("ReturnPayment", "returnPayment", map[string]any{"orderId": d.Orders["return"], "providerPaymentId": d.SecondPayment}),
		move("SettleRefund", "settleRefund", map[string]any{"refundId": d.LostRefund, "reference": "re_950", "note": "The provider's support says so"}),
		move("ClearAttention", "clearAttention", map[string]any{"orderId": d.Orders["clear"], "note": "The provider has explained it"}),
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
