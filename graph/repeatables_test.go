package graph_test

// repeatable is a mutation with an idempotency key: what asks for it, an input, another input, and
// what must not stand in an answer that refuses the other one.
type repeatable struct {
	field, inputType, result string
	input, other             func(n *tenant) vars
	secrets                  string
}

// repeatables has every mutation of the schema; one that is missing fails the test.
var repeatables = []repeatable{
	{
		"createCustomer", "CreateCustomerInput", "customer",
		func(*tenant) vars { return vars{"name": "First", "currency": "EUR"} },
		func(*tenant) vars { return vars{"name": "Second", "currency": "EUR"} }, "First cus_",
	},
	{
		"createInvoiceSeries", "CreateInvoiceSeriesInput", "series",
		func(*tenant) vars { return vars{"code": "WEB", "format": "{CODE}/{N}"} },
		func(*tenant) vars { return vars{"code": "WEB", "format": "{CODE}_{N}"} }, "WEB ser_",
	},
	{
		"allocateInvoice", "AllocateInvoiceInput", "invoice",
		func(n *tenant) vars { return allocation(n, 4950) },
		func(n *tenant) vars { return allocation(n, 4951) }, "4950 INV- inv_",
	},
	{
		"createDraftInvoice", "CreateDraftInvoiceInput", "invoice",
		func(n *tenant) vars { return drafted(n, 4950) }, func(n *tenant) vars { return drafted(n, 4951) }, "4950 inv_",
	},
	{
		"updateCustomer", "UpdateCustomerInput", "customer",
		func(n *tenant) vars {
			return vars{"customerId": n.customerID, "version": n.customerVersion, "name": "Renamed"}
		},
		func(n *tenant) vars {
			return vars{"customerId": n.customerID, "version": n.customerVersion, "email": "a@b.example"}
		}, "Renamed cus_",
	},
	{
		"createProduct", "CreateProductInput", "product",
		func(*tenant) vars {
			return vars{"sku": "clock", "name": "Clock", "unitPriceMinor": 2900, "currency": "EUR"}
		},
		func(*tenant) vars {
			return vars{"sku": "clock", "name": "Clock", "unitPriceMinor": 2900, "currency": "EUR", "stock": 1}
		}, "clock prd_ 2900",
	},
	{
		"updateProduct", "UpdateProductInput", "product",
		func(n *tenant) vars {
			return vars{"productId": n.productID, "version": n.productVersion, "name": "Renamed"}
		},
		func(n *tenant) vars {
			return vars{"productId": n.productID, "version": n.productVersion, "active": false}
		}, "Renamed prd_",
	},
	{
		"placeOrder", "PlaceOrderInput", "order",
		func(n *tenant) vars { return placement(n, 2) }, func(n *tenant) vars { return placement(n, 3) }, "ord_ prd_ cus_ 9900 PAID",
	},
	// In this order each finds the tenant's orders where it begins: one is paid, the payment of the
	// other was declined.
	{
		"fulfillOrder", "FulfillOrderInput", "order",
		func(n *tenant) vars { return vars{"orderId": n.orderID} }, func(n *tenant) vars { return vars{"orderId": n.neighbourOrderID} }, "ord_ FULFILLED PAID",
	},
	{
		"refundOrder", "RefundOrderInput", "order",
		func(n *tenant) vars { return vars{"orderId": n.orderID, "amountMinor": 950} }, func(n *tenant) vars { return vars{"orderId": n.orderID} }, "ord_ 950",
	},
	{
		"returnPayment", "ReturnPaymentInput", "order",
		func(n *tenant) vars { return vars{"orderId": n.orderID, "providerPaymentId": secondPayment} },
		func(n *tenant) vars { return vars{"orderId": n.orderID, "providerPaymentId": "another"} }, "ord_ " + secondPayment,
	},
	{
		"clearAttention", "ClearAttentionInput", "order",
		func(n *tenant) vars { return vars{"orderId": n.neighbourOrderID, "note": "Called them"} },
		func(n *tenant) vars { return vars{"orderId": n.neighbourOrderID, "note": "Wrote them"} }, "ord_ Called",
	},
	{
		"retryPayment", "RetryPaymentInput", "order",
		func(n *tenant) vars { return vars{"orderId": n.neighbourOrderID, "paymentMethod": "sim_declined"} },
		func(n *tenant) vars { return vars{"orderId": n.neighbourOrderID} }, "ord_ sim_ declined",
	},
	{
		"cancelOrder", "CancelOrderInput", "order",
		func(n *tenant) vars { return vars{"orderId": n.neighbourOrderID} }, func(n *tenant) vars { return vars{"orderId": n.orderID} }, "ord_ CANCELLED",
	},
	{
		"createApiKey", "CreateApiKeyInput", "apiKey",
		func(n *tenant) vars {
			return vars{"customerId": n.customerID, "name": "ticket desk", "unitPrice": "0.5"}
		},
		func(n *tenant) vars {
			return vars{"customerId": n.customerID, "name": "ticket desk", "unitPrice": "0.6"}
		}, "ticket ck_ cus_",
	},
	{
		"revokeApiKey", "RevokeApiKeyInput", "apiKey",
		func(n *tenant) vars { return vars{"apiKeyId": n.keyID} }, func(n *tenant) vars { return vars{"apiKeyId": n.neighbourKeyID} }, "ck_ set_ REVOKED",
	},
	{
		"grantBillingExemption", "GrantBillingExemptionInput", "exemption",
		func(n *tenant) vars { return vars{"customerId": n.customerID, "reason": "a partner"} },
		func(n *tenant) vars { return vars{"customerId": n.customerID, "reason": "a friend"} }, "exm_ partner",
	},
	{
		"removeBillingExemption", "RemoveBillingExemptionInput", "customer",
		func(n *tenant) vars { return vars{"customerId": n.customerID} }, func(n *tenant) vars { return vars{"customerId": n.neighbourID} }, "cus_ exm_ partner",
	},
	{
		"recordInvoicePayment", "RecordInvoicePaymentInput", "invoice",
		func(n *tenant) vars {
			return vars{"invoiceId": n.invoiceID, "amountMinor": 9900, "reference": "transfer 1"}
		},
		func(n *tenant) vars {
			return vars{"invoiceId": n.invoiceID, "amountMinor": 9900, "reference": "transfer 2"}
		}, "inv_ transfer 9900",
	},
	// One invoice is waived, and voided after that.
	{
		"waiveInvoice", "WaiveInvoiceInput", "invoice",
		func(n *tenant) vars {
			return vars{"invoiceId": n.neighbourInvoiceID, "version": n.neighbourInvoiceVersion, "reason": "goodwill"}
		},
		func(n *tenant) vars {
			return vars{"invoiceId": n.neighbourInvoiceID, "version": n.neighbourInvoiceVersion, "reason": "a favour"}
		}, "inv_ goodwill",
	},
	{
		"voidInvoice", "VoidInvoiceInput", "invoice",
		func(n *tenant) vars { return vars{"invoiceId": n.neighbourInvoiceID, "reason": "a mistake"} },
		func(n *tenant) vars { return vars{"invoiceId": n.invoiceID, "reason": "a mistake"} }, "inv_ mistake",
	},
	{
		"createAccessToken", "CreateAccessTokenInput", "accessToken",
		func(n *tenant) vars {
			return vars{"role": "CUSTOMER", "customerId": n.customerID, "name": "till", "scopes": []string{"READ"}}
		},
		func(*tenant) vars { return vars{"role": "SERVICE", "name": "till"} }, "tok_ till cst_ cus_",
	},
	{
		"rotateAccessToken", "RotateAccessTokenInput", "accessToken",
		func(n *tenant) vars { return vars{"tokenId": n.tokenID, "graceSeconds": 60} },
		func(n *tenant) vars { return vars{"tokenId": n.spareTokenID, "graceSeconds": 60} }, "tok_ cst_",
	},
	{
		"revokeAccessToken", "RevokeAccessTokenInput", "accessToken",
		func(n *tenant) vars { return vars{"tokenId": n.tokenID} }, func(n *tenant) vars { return vars{"tokenId": n.spareTokenID} }, "tok_ cst_",
	},
}

// repeatedElsewhere are mutations that have nothing to compare by its id, or that need a row of their own.
var repeatedElsewhere = map[string]string{
	"recordUsage": "TestUsageIsRepeatable", "updateSeller": "TestSellerIsChangedOnce",
	"updateDraftInvoice": "TestLifeOfADraft", "deleteDraftInvoice": "TestLifeOfADraft", "finalizeInvoice": "TestLifeOfADraft", "issueCreditNote": "TestCreditNoteOfTheWire",
	"settleRefund":  "TestARefundThatAPersonSettles",
	"importNumbers": "TestChangesOfASeriesAreRepeatable", "resyncSeries": "TestChangesOfASeriesAreRepeatable",
}

func placement(n *tenant, quantity int) vars {
	return vars{"customerId": n.customerID, "items": []vars{{"productId": n.productID, "quantity": quantity}}}
}

func allocation(n *tenant, amount int) vars {
	return vars{"seriesId": n.seriesID, "customerId": n.customerID, "currency": "EUR",
		"lines": []vars{{"description": "Chess set", "quantity": 1, "unitAmountMinor": amount}}}
}

func drafted(n *tenant, amount int) vars {
	return vars{"customerId": n.customerID, "currency": "EUR", "lines": []vars{{"description": "Chess set", "quantity": 1, "unitAmountMinor": amount}}}
}
