package graph_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/graph"
	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/payment"
	"countersign/internal/testdb"
	"countersign/internal/testdb/pgproxy"
	"countersign/internal/txn"
)

// provoked is, for each code, a request over HTTP that is answered with it, by the server or by one of
// its own. A code without a row here fails the test.
var provoked = map[domain.Code]func(t *testing.T, a *api) response{
	domain.CodeNotFound: asks(func(n *tenant) (string, vars) {
		return "allocateInvoice", changed(allocation(n, 1), "seriesId", absent("ser"))
	}),
	domain.CodeIdempotencyKeyReused: func(t *testing.T, a *api) response {
		a.must(t, a.demo.admin, makeOne, vars{"name": "One", "key": "once"})
		return a.do(t, a.demo.admin, makeOne, vars{"name": "Two", "key": "once"})
	},
	domain.CodeInvalidQuantity: asks(func(n *tenant) (string, vars) {
		return "placeOrder", changed(placement(n, 0), "idempotencyKey", "k")
	}),
	domain.CodeInvalidFormat: asks(func(*tenant) (string, vars) {
		return "createInvoiceSeries", vars{"code": "X", "format": "{N}{N}"}
	}),
	domain.CodeAmountOverflow: asks(func(n *tenant) (string, vars) {
		line := vars{"description": "x", "quantity": 2, "unitAmountMinor": "9000000000000000000"}
		return "allocateInvoice", changed(allocation(n, 1), "lines", []vars{line})
	}),
	domain.CodeNegativeTotal: asks(func(n *tenant) (string, vars) { return "allocateInvoice", allocation(n, -1) }),
	domain.CodePeriodClosed: asks(func(n *tenant) (string, vars) {
		return "allocateInvoice", changed(allocation(n, 1), "issueDate", "2020-01-01")
	}),
	domain.CodeCodeTaken: asks(func(*tenant) (string, vars) {
		return "createInvoiceSeries", vars{"code": "INV", "format": "x{N}"}
	}),
	domain.CodeSeriesKindMismatch: asks(func(n *tenant) (string, vars) {
		return "allocateInvoice", changed(allocation(n, 1), "seriesId", n.creditSeriesID)
	}),
	domain.CodeSeriesExhausted: func(t *testing.T, _ *api) response {
		a := newAPI(t)
		a.db.Exec(t, `UPDATE series_counters SET next_number = max_number + 1`)
		return a.ask(t, "allocateInvoice", allocation(a.demo, 1), "")
	},
	domain.CodePresetViolated: asks(func(*tenant) (string, vars) {
		return "createInvoiceSeries", vars{"code": "GST", "preset": "INDIA", "maxLength": 30}
	}),
	domain.CodeTokenEnded: func(t *testing.T, a *api) response {
		token := a.ask(t, "createAccessToken", vars{"name": "x", "role": "SERVICE"}, "accessToken { id }").text(t, "f.accessToken.id")
		a.ask(t, "revokeAccessToken", vars{"tokenId": token}, "")
		return a.ask(t, "rotateAccessToken", vars{"tokenId": token}, "")
	},
	domain.CodePriceChanged: asks(func(n *tenant) (string, vars) {
		return "placeOrder", changed(placement(n, 1), "idempotencyKey", "k", "expectedTotalMinor", 1)
	}),
	domain.CodeInsufficientStock: func(t *testing.T, a *api) response {
		scarce := a.ask(t, "createProduct", vars{"sku": "scarce", "name": "x", "unitPriceMinor": 1, "currency": "EUR", "stock": 1}, "product { id }").text(t, "f.product.id")
		return a.ask(t, "placeOrder", vars{"idempotencyKey": "k", "customerId": a.demo.customerID, "items": []vars{{"productId": scarce, "quantity": 2}}}, "")
	},
	domain.CodeCurrencyMismatch: func(t *testing.T, a *api) response {
		abroad := a.ask(t, "createProduct", vars{"sku": "abroad", "name": "x", "unitPriceMinor": 1, "currency": "USD"}, "product { id }").text(t, "f.product.id")
		items := []vars{{"productId": abroad, "quantity": 1}, {"productId": a.demo.productID, "quantity": 1}}
		return a.ask(t, "placeOrder", vars{"idempotencyKey": "k", "customerId": a.demo.customerID, "items": items}, "")
	},
	domain.CodeProductInactive: asks(func(n *tenant) (string, vars) {
		return "placeOrder", vars{"idempotencyKey": "k", "customerId": n.customerID, "items": []vars{{"productId": n.retiredID, "quantity": 1}}}
	}),
	domain.CodeSKUTaken: asks(func(*tenant) (string, vars) {
		return "createProduct", vars{"sku": "set", "name": "x", "unitPriceMinor": 1, "currency": "EUR"}
	}),
	domain.CodeIllegalTransition: asks(func(n *tenant) (string, vars) { return "fulfillOrder", vars{"orderId": n.neighbourOrderID} }),
	domain.CodeStaleVersion: asks(func(n *tenant) (string, vars) {
		return "updateProduct", vars{"productId": n.productID, "version": "2026-01-01T00:00:00.000000Z", "name": "x"}
	}),
	domain.CodePaymentInProgress: func(t *testing.T, a *api) response {
		order := a.order(t, a.demo, a.demo.customerID, payment.SimTimeoutUncharged, a.demo.productID)
		return a.ask(t, "cancelOrder", vars{"orderId": order}, "")
	},
	domain.CodeRefundTooLarge: asks(func(n *tenant) (string, vars) {
		return "refundOrder", vars{"orderId": n.orderID, "amountMinor": 1_000_000}
	}),
	domain.CodeNothingToDo: func(t *testing.T, a *api) response {
		paid := a.must(t, a.demo.admin, `{ order(id: "`+a.demo.orderID+`") { captures { providerPaymentId } } }`, nil).list(t, "order.captures", "providerPaymentId")
		pays := slices.DeleteFunc(paid, func(id string) bool { return id == secondPayment })
		return a.ask(t, "returnPayment", vars{"orderId": a.demo.orderID, "providerPaymentId": pays[0]}, "")
	},
	domain.CodeMoneyOwed: asks(func(n *tenant) (string, vars) { return "clearAttention", vars{"orderId": n.orderID, "note": "x"} }),
	domain.CodeKeyRevoked: func(t *testing.T, a *api) response {
		a.revoke(t, a.demo, a.demo.neighbourKeyID)
		return a.ask(t, "recordUsage", usage(a.demo.neighbourKeyID, 1), "")
	},
	domain.CodeOutOfRange: asks(func(n *tenant) (string, vars) {
		event := vars{"id": "e", "apiKeyId": n.keyID, "quantity": 1, "occurredAt": "2020-01-01T00:00:00Z"}
		return "recordUsage", vars{"events": []vars{event}}
	}),
	domain.CodeEventConflict: func(t *testing.T, a *api) response {
		a.ask(t, "recordUsage", usage(a.demo.keyID, 1), "")
		return a.ask(t, "recordUsage", usage(a.demo.keyID, 2), "")
	},
	domain.CodeAlreadyExempt: func(t *testing.T, a *api) response {
		a.exempt(t, a.demo, a.demo.neighbourID)
		return a.ask(t, "grantBillingExemption", vars{"customerId": a.demo.neighbourID, "reason": "x"}, "")
	},
	domain.CodeNotExempt: asks(func(n *tenant) (string, vars) {
		return "removeBillingExemption", vars{"customerId": n.customerID}
	}),
	domain.CodeAmountMismatch: asks(func(n *tenant) (string, vars) {
		return "recordInvoicePayment", vars{"invoiceId": n.invoiceID, "amountMinor": 9901, "reference": "x"}
	}),
	domain.CodeReferenceTaken: func(t *testing.T, a *api) response {
		part := vars{"invoiceId": a.demo.invoiceID, "amountMinor": 1, "reference": "a transfer"}
		a.ask(t, "recordInvoicePayment", part, "")
		return a.ask(t, "recordInvoicePayment", part, "")
	},
	domain.CodeCreditTooLarge: asks(func(n *tenant) (string, vars) {
		return "issueCreditNote", vars{"invoiceId": n.invoiceID, "amountMinor": 1_000_000, "reason": "x"}
	}),

	domain.CodeInvalidRow: asks(func(n *tenant) (string, vars) {
		return "importNumbers", vars{"seriesId": n.seriesID, "reason": "x", "numbers": []vars{{"number": 0}}}
	}),
	domain.CodeNumbersTaken: asks(func(n *tenant) (string, vars) {
		return "importNumbers", vars{"seriesId": n.seriesID, "reason": "x", "numbers": []vars{{"number": 1}}}
	}),
	domain.CodeNumbersUnexplained: asks(func(n *tenant) (string, vars) {
		return "importNumbers", vars{"seriesId": n.seriesID, "reason": "x", "numbers": []vars{{"number": 9}}, "dryRun": false}
	}),

	domain.CodeUnauthenticated: func(t *testing.T, a *api) response { return a.do(t, "", `{ customers { nodes { id } } }`, nil) },
	domain.CodeForbidden: func(t *testing.T, a *api) response {
		return a.do(t, a.demo.service, `{ doctor { healthy } }`, nil)
	},
	domain.CodeBadInput: func(t *testing.T, a *api) response {
		return a.do(t, a.demo.admin, `{ node(id: "x") { id } }`, nil)
	},
	domain.CodeLimitExceeded: func(t *testing.T, a *api) response {
		return a.do(t, a.demo.admin, `{`+many(21, " a%d: __typename")+`}`, nil)
	},
	domain.CodeBusy: func(t *testing.T, _ *api) response {
		a := newAPI(t, func(d *testdb.DB, o *graph.Options) {
			pool := d.NewPool(t, 1)
			held, err := pool.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(held.Release)
			db := txn.New(pool, txn.Settings{AcquireTimeout: 20 * time.Millisecond})
			o.Resolver = &graph.Resolver{DB: db, Invoicing: invoicing.New(db)}
		})
		return a.do(t, a.demo.admin, makeOne, vars{"name": "x"})
	},
	domain.CodeUnavailable: func(t *testing.T, _ *api) response {
		a, proxy := proxied(t)
		proxy.Refuse(true)
		proxy.CutAll()
		return a.do(t, a.demo.admin, makeOne, vars{"name": "x"})
	},
	domain.CodeOutcomeUnknown: func(t *testing.T, _ *api) response {
		a, proxy := proxied(t)
		proxy.CutAfter(pgproxy.Query("InsertCustomer").Times(pgproxy.Always))
		return a.do(t, a.demo.admin, makeOne, vars{"name": "x"})
	},
	domain.CodeNotRun: func(t *testing.T, a *api) response {
		return a.do(t, a.demo.admin, "mutation {"+made("a", " ")+made("b", "behind")+"}", nil)
	},
	domain.CodeSeriesInconsistent: func(t *testing.T, _ *api) response {
		a := newAPI(t)
		a.db.Exec(t, `UPDATE series_counters SET next_number = 1`)
		return a.ask(t, "allocateInvoice", allocation(a.demo, 1), "")
	},
	domain.CodeInternal: func(t *testing.T, _ *api) response {
		a := newAPI(t)
		a.db.Exec(t, `DROP TABLE invoice_lines CASCADE`)
		return a.do(t, a.demo.admin, `{ invoices { nodes { lines { quantity } } } }`, nil)
	},
}

// byCommand are codes that no field answers yet, and the command that does.
var byCommand = map[domain.Code]string{domain.CodeMonthNotOver: "close-month"}

// asks is one mutation with an input.
func asks(ask func(n *tenant) (field string, input vars)) func(t *testing.T, a *api) response {
	return func(t *testing.T, a *api) response {
		field, input := ask(a.demo)
		return a.ask(t, field, input, "")
	}
}

// ask asks for a mutation as an admin, and for some of its payload beside the user errors.
func (a *api) ask(t *testing.T, field string, input vars, of string) response {
	t.Helper()
	return a.do(t, a.demo.admin, `mutation ($i: `+strings.ToUpper(field[:1])+field[1:]+`Input!) { f: `+field+`(input: $i) { `+of+` userErrors { code message path } } }`, vars{"i": input})
}

func changed(v vars, pairs ...any) vars {
	v = maps.Clone(v)
	for i := 0; i < len(pairs); i += 2 {
		v[pairs[i].(string)] = pairs[i+1]
	}
	return v
}

// usage is an event of a key, with one id.
func usage(key string, quantity int) vars {
	return vars{"events": []vars{{"id": "event", "apiKeyId": key, "quantity": quantity, "occurredAt": domain.FormatTime(time.Now())}}}
}

// proxied is a server that reaches its database through a proxy.
func proxied(t *testing.T) (*api, *pgproxy.Proxy) {
	var proxy *pgproxy.Proxy
	a := newAPI(t, func(d *testdb.DB, o *graph.Options) {
		proxy = pgproxy.New(t, d.URL)
		db := txn.New(d.PoolAt(t, proxy.URL(), 4), txn.Settings{})
		o.Resolver = &graph.Resolver{DB: db, Invoicing: invoicing.New(db)}
	})
	return a, proxy
}

// everyCode is what the wire can answer: the schema's codes and those of the response's errors.
func everyCode() []domain.Code {
	all := slices.Clone(topLevel)
	for _, value := range schema.Types["UserErrorCode"].EnumValues {
		all = append(all, domain.Code(value.Name))
	}
	return all
}

// TestEveryCodeIsReached: each code of the wire is answered to a request over HTTP, as what it is: in
// a payload, or among the errors of the response.
func TestEveryCodeIsReached(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, code := range everyCode() {
		t.Run(string(code), func(t *testing.T) {
			provoke := provoked[code]
			if (provoke == nil) == (byCommand[code] == "") {
				t.Fatal("no request of this test is answered with it, or one and a command")
			}
			if provoke == nil {
				return
			}
			r := provoke(t, a)
			answered := r.codes()
			if !slices.Contains(topLevel, code) {
				if len(r.errors) > 0 {
					t.Fatalf("answered %s", r.body)
				}
				answered = nil
				for field := range r.data {
					answered = append(answered, r.list(t, field+".userErrors", "code")...)
				}
			}
			if !slices.Contains(answered, string(code)) {
				t.Errorf("answered %s", r.body)
			}
		})
	}
}

// TestEveryCodeIsDocumented: docs/errors.md has a row for each code and for nothing else, says where
// each user error occurs by mutations that there are, and what to do about each.
func TestEveryCodeIsDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[domain.Code][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\|(.*)\\|$").FindAllStringSubmatch(string(text), -1) {
		if told[domain.Code(row[1])] != nil {
			t.Errorf("%s has two rows", row[1])
		}
		told[domain.Code(row[1])] = strings.Split(row[2], "|")
	}
	for _, code := range everyCode() {
		row := told[code]
		delete(told, code)
		if len(row) != 3 || slices.ContainsFunc(row, func(cell string) bool { return strings.TrimSpace(cell) == "" }) {
			t.Errorf("%s has no row of its meaning, what to do and where it occurs: %q", code, row)
			continue
		}
		for _, field := range regexp.MustCompile("`([a-z][A-Za-z]+)`").FindAllStringSubmatch(row[2], -1) {
			if schema.Mutation.Fields.ForName(field[1]) == nil && schema.Query.Fields.ForName(field[1]) == nil {
				t.Errorf("%s occurs in %s, which there is not", code, field[1])
			}
		}
	}
	for code := range told {
		t.Errorf("docs/errors.md has %s, which no answer has: %v", code, fmt.Sprint(told[code]))
	}
}
