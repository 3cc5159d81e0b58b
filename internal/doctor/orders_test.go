package doctor_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"countersign/internal/doctor"
	"countersign/internal/domain"
	"countersign/internal/ordering"
	"countersign/internal/payment"
)

// addOrders sells two products: o1 is paid, o2 was declined, of o3 a part was given back (r3), of o4
// everything (r4); o5 was paid twice, and the second payment has gone back (r5).
func (p *practice) addOrders(t *testing.T, b *books) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var items []domain.OrderItemInput
	for i, name := range []string{"set", "clock"} {
		product, err := p.orders.CreateProduct(ctx, b.caller, ordering.CreateProductInput{SKU: name, Name: name, UnitPriceMinor: domain.Cents(4000 + i), Currency: "EUR"})
		must(err)
		b.keep(name, product.Value.ID)
		items = append(items, domain.OrderItemInput{ProductID: product.Value.ID, Quantity: 1})
	}
	customer := b.ids["cus"].(domain.CustomerID)
	for i, method := range []string{payment.SimOK, payment.SimDeclined, payment.SimOK, payment.SimOK, payment.SimOK} {
		name := fmt.Sprintf("o%d", i+1)
		order, err := p.orders.Place(ctx, b.caller, ordering.PlaceOrderInput{IdempotencyKey: name, CustomerID: &customer, Items: items, PaymentMethod: &method})
		must(err)
		b.keep(name, order.Value.ID)
	}
	for i, amount := range []*domain.Cents{new(domain.Cents(1000)), nil} {
		_, err := p.orders.Refund(ctx, b.caller, ordering.RefundOrderInput{OrderID: b.ids[fmt.Sprintf("o%d", i+3)].(domain.OrderID), AmountMinor: amount})
		must(err)
	}
	second := domain.Fact{Kind: domain.FactPaid, PaymentID: "second " + b.tenant.String(), Amount: domain.Money{AmountMinor: 8001, Currency: "EUR"}}
	back := second
	back.Kind, back.RefundID = domain.FactRefunded, "back "+b.tenant.String()
	for _, fact := range []domain.Fact{second, back} {
		must(p.orders.Receive(ctx, payment.Event{ID: string(fact.Kind) + b.tenant.String(), Reference: b.ids["o5"].(domain.OrderID).String(), Fact: fact}))
	}
	for _, n := range []string{"3", "4", "5"} {
		var id domain.RefundID
		must(p.d.Pool.QueryRow(ctx, `SELECT id FROM refunds WHERE tenant_id = $1 AND order_id = $2`, b.tenant, b.ids["o"+n]).Scan(&id))
		b.keep("r"+n, id)
	}
}

// orderDamages are what can befall a tenant's orders.
var orderDamages = []damage{
	{
		name: "an order's total is changed",
		sql:  []string{`UPDATE orders SET total_minor = total_minor + 1 WHERE id = @o2`},
		want: []string{"ORDER_TOTAL_IS_SUM_OF_LINES o2"}, says: "the total is 8002, its lines sum to 8001",
	},
	{
		name: "a line of an order is lost",
		sql:  []string{`DELETE FROM order_lines WHERE order_id = @o1 AND position = 2`},
		want: []string{"ORDER_TOTAL_IS_SUM_OF_LINES o1"}, says: "sum to 4000",
	},
	{
		name: "all lines of an order are lost",
		sql:  []string{`DELETE FROM order_lines WHERE order_id = @o1`},
		want: []string{"ORDER_TOTAL_IS_SUM_OF_LINES o1"}, says: "sum to 0",
	},
	{
		name: "a line has another quantity",
		sql:  []string{`UPDATE order_lines SET quantity = 2, amount_minor = 8000 WHERE order_id = @o1 AND position = 1`},
		want: []string{"ORDER_TOTAL_IS_SUM_OF_LINES o1"}, says: "12001",
	},
	{
		name: "a key placed two orders",
		sql:  []string{`UPDATE orders SET idempotency_key = 'o1' WHERE id = @o3`},
		want: []string{"ORDER_ONE_PER_KEY o1 o3"}, says: "one key placed 2 orders",
	},

	{
		name: "a history is lost",
		sql:  []string{`DELETE FROM order_history WHERE order_id = @o4`},
		want: []string{"ORDER_HISTORY_LEGAL o4"}, says: "has no history",
	},
	{
		name: "the first step is lost",
		sql:  []string{`DELETE FROM order_history WHERE order_id = @o4 AND position = 1`},
		want: []string{"ORDER_HISTORY_LEGAL o4"}, says: "step 1 is missing",
	},
	{
		name: "a step between is lost",
		sql:  []string{`DELETE FROM order_history WHERE order_id = @o4 AND position = 3`},
		want: []string{"ORDER_HISTORY_LEGAL o4"}, says: "step 3 is missing",
	},
	{
		name: "the last step is lost",
		sql:  []string{`DELETE FROM order_history WHERE order_id = @o1 AND position = 2`},
		want: []string{"ORDER_HISTORY_LEGAL o1"}, says: "the order is PAID, its last step ended at PENDING",
	},
	{
		name: "a step is taken twice",
		sql: []string{`INSERT INTO order_history (tenant_id, id, order_id, position, event, from_status, to_status, operation_id, operation_fingerprint, moved_by, moved_at)
			SELECT tenant_id, gen_random_uuid(), order_id, position, event, to_status, to_status, gen_random_uuid(), operation_fingerprint, moved_by, moved_at
			FROM order_history WHERE order_id = @o2 AND position = 2`},
		want: []string{"ORDER_HISTORY_LEGAL o2"}, says: "step 2 is taken twice",
	},
	{
		name: "an order is moved without a step",
		sql:  []string{`UPDATE orders SET status = 'FULFILLED', fulfilled_at = paid_at WHERE id = @o1`},
		want: []string{"ORDER_HISTORY_LEGAL o1"}, says: "the order is FULFILLED, its last step ended at PAID",
	},
	{
		name: "a step begins where the one before did not end",
		sql:  []string{`UPDATE order_history SET from_status = 'CANCELLED' WHERE order_id = @o1 AND position = 2`},
		want: []string{"ORDER_HISTORY_LEGAL o1"}, says: "step 2 begins at CANCELLED, the one before ended at PENDING",
	},
	{
		name: "a step that the state machine does not have",
		sql: []string{
			`UPDATE order_history SET to_status = 'FULFILLED' WHERE order_id = @o1 AND position = 2`,
			`UPDATE orders SET status = 'FULFILLED', fulfilled_at = paid_at WHERE id = @o1`,
		},
		want: []string{"ORDER_HISTORY_LEGAL o1"}, says: "step 2 goes from PENDING to FULFILLED",
	},
	{
		name: "an order is born paid",
		sql: []string{
			`UPDATE order_history SET to_status = 'PAID' WHERE order_id = @o1 AND position = 1`,
			`UPDATE order_history SET from_status = 'PAID' WHERE order_id = @o1 AND position = 2`,
		},
		want: []string{"ORDER_HISTORY_LEGAL o1"}, says: "step 1 goes from nothing to PAID",
	},

	{
		name: "what paid an order is lost",
		sql:  []string{`DELETE FROM captures WHERE order_id = @o1`},
		want: []string{"CAPTURE_ACCOUNTED_FOR o1"}, says: "the order is PAID and nothing paid it",
	},
	{
		name: "what paid an order is to be given back",
		sql:  []string{`UPDATE captures SET state = 'REFUND_DUE' WHERE order_id = @o1`, `UPDATE orders SET attention = 'x' WHERE id = @o1`},
		want: []string{"CAPTURE_ACCOUNTED_FOR o1"}, says: "nothing paid it",
	},
	{
		name: "an order is not paid, and a capture pays it",
		sql: []string{`INSERT INTO captures SELECT tenant_id, provider, 'x' || provider_payment_id, @o2, amount_minor, currency, 'APPLIED', captured_at, updated_at
			FROM captures WHERE order_id = @o1`},
		want: []string{"CAPTURE_ACCOUNTED_FOR o2"}, says: "the order is PENDING, and a capture is said to pay it",
	},
	{
		name: "two captures pay one order",
		sql: []string{`INSERT INTO captures SELECT tenant_id, provider, 'x' || provider_payment_id, order_id, amount_minor, currency, state, captured_at, updated_at
			FROM captures WHERE order_id = @o1`},
		want: []string{"CAPTURE_ACCOUNTED_FOR o1"}, says: "2 captures are said to pay it",
	},
	{
		name: "less was paid than an order costs",
		sql:  []string{`UPDATE captures SET amount_minor = 8000 WHERE order_id = @o1`},
		want: []string{"CAPTURE_ACCOUNTED_FOR o1"}, says: "it costs 8001 EUR and was paid 8000 EUR",
	},
	{
		name: "an order was paid in another currency",
		sql:  []string{`UPDATE captures SET currency = 'CHF' WHERE order_id = @o1`},
		want: []string{"CAPTURE_ACCOUNTED_FOR o1"}, says: "was paid 8001 CHF",
	},
	{
		name: "a flagged capture that nobody looks at",
		sql: []string{`INSERT INTO captures SELECT tenant_id, provider, 'flagged payment', @o2, 1, currency, 'FLAGGED', captured_at, updated_at
			FROM captures WHERE order_id = @o1`},
		want: []string{"CAPTURE_ACCOUNTED_FOR o2"}, says: "the capture flagged payment is FLAGGED, and nobody is asked to look",
	},
	{
		name: "a payment that is to be given back, and that nobody looks at",
		sql: []string{`INSERT INTO captures SELECT tenant_id, provider, 'due payment', @o1, 1, currency, 'REFUND_DUE', captured_at, updated_at
			FROM captures WHERE order_id = @o1`},
		want: []string{"CAPTURE_ACCOUNTED_FOR o1"}, says: "the capture due payment is REFUND_DUE, and nobody is asked to look",
	},
	{
		name: "a capture is said to be returned, and was not",
		sql:  []string{`DELETE FROM refunds WHERE id = @r5`},
		want: []string{"CAPTURE_ACCOUNTED_FOR o5"}, says: "is RETURNED, and 0 of 8001 went back",
	},
	{
		name: "a capture was returned, and is still to be given back",
		sql:  []string{`UPDATE captures SET state = 'REFUND_DUE' WHERE order_id = @o5 AND state = 'RETURNED'`, `UPDATE orders SET attention = 'x' WHERE id = @o5`},
		want: []string{"CAPTURE_ACCOUNTED_FOR o5"}, says: "is REFUND_DUE, and 8001 of 8001 went back",
	},

	{
		name: "another amount is said to be refunded",
		sql:  []string{`UPDATE orders SET refunded_minor = refunded_minor + 1 WHERE id = @o3`},
		want: []string{"REFUNDS_ACCOUNTED_FOR o3"}, says: "it is said that 1001 is refunded, the refunds sum to 1000",
	},
	{
		name: "a refund is lost",
		sql:  []string{`DELETE FROM refunds WHERE id = @r3`},
		want: []string{"REFUNDS_ACCOUNTED_FOR o3"}, says: "sum to 0",
	},
	{
		name: "a refund failed, and its amount is not put back",
		sql:  []string{`UPDATE refunds SET status = 'FAILED' WHERE id = @r3`},
		want: []string{"REFUNDS_ACCOUNTED_FOR o3"}, says: "sum to 0",
	},
	{
		name: "an order is refunded before its money has gone back",
		sql:  []string{`UPDATE refunds SET status = 'PENDING', ended_at = NULL WHERE id = @r4`},
		want: []string{"REFUNDS_ACCOUNTED_FOR o4"}, says: "the order is REFUNDED, and 0 of 8001 went back",
	},
	{
		name: "an order is paid after its money has gone back",
		sql: []string{
			`UPDATE orders SET status = 'PAID', refunded_at = NULL WHERE id = @o4`,
			`UPDATE order_history SET to_status = 'PAID' WHERE order_id = @o4 AND to_status = 'REFUNDED'`,
		},
		want: []string{"REFUNDS_ACCOUNTED_FOR o4"}, says: "the order is PAID, and 8001 of 8001 went back",
	},
	{
		name: "a provider's refund was applied to two orders",
		sql:  []string{`UPDATE refunds SET provider_refund_id = (SELECT provider_refund_id FROM refunds WHERE id = @r3) WHERE id = @r4`},
		want: []string{"EVENT_APPLIED_ONCE r3 r4"}, says: "stands in 2 rows",
	},

	{
		name: "an operation made a product and moved an order",
		sql:  []string{`UPDATE order_history SET operation_id = (SELECT operation_id FROM products WHERE id = @set) WHERE order_id = @o2 AND position = 2`},
		want: []string{"OPERATION_ONCE set o2"},
	},
}

// The doctor knows the state machine that the server moves orders by: of every pair of states it
// finds the step between them legal or not as the domain does. A step to where the order stands is
// one that moved nothing but its money.
func TestDoctorKnowsTheStateMachine(t *testing.T) {
	t.Parallel()
	p := newPractice(t)
	for _, check := range []string{"orders_paid_has_paid_at", "orders_fulfilled_has_fulfilled_at", "orders_cancelled_has_cancelled_at", "orders_refunded_has_refunded_at"} {
		p.d.Exec(t, "ALTER TABLE orders DROP CONSTRAINT "+check)
	}
	b := p.newBooks(t, "rook")
	for _, from := range domain.OrderStatuses {
		for _, to := range domain.OrderStatuses {
			b.ids["from"], b.ids["to"] = from, to
			p.changes(t, `UPDATE order_history SET to_status = @from WHERE order_id = @o2 AND position = 1`, b)
			p.changes(t, `UPDATE order_history SET from_status = @from, to_status = @to WHERE order_id = @o2 AND position = 2`, b)
			p.changes(t, `UPDATE orders SET status = @to WHERE id = @o2`, b)
			var found []string
			for _, v := range p.check(t, b.tenant).Violations {
				if v.Invariant == "ORDER_HISTORY_LEGAL" {
					found = append(found, v.Message)
				}
			}
			var want []string
			if from != domain.OrderPending {
				want = append(want, fmt.Sprintf("step 1 goes from nothing to %s", from))
			}
			if from.CheckMove(to) != nil && from != to {
				want = append(want, fmt.Sprintf("step 2 goes from %s to %s", from, to))
			}
			if slices.Sort(found); !slices.Equal(found, want) {
				t.Errorf("from %s to %s the doctor finds %q, want %q", from, to, found, want)
			}
		}
	}
}

// Webhooks about nothing that is ours are no violation, and the operator sees them, oldest first;
// those that were applied, and those that wait at an order of ours, are none of them. One that came
// before its order is none any more once it was applied.
func TestStrayEvents(t *testing.T) {
	t.Parallel()
	p := newPractice(t)
	b := p.newBooks(t, "rook")
	order := b.ids["o1"].(domain.OrderID).String()
	nobodys := domain.NewID[domain.OrderID]().String()
	for _, e := range []payment.Event{
		{ID: "of nobody's order", Reference: nobodys, Fact: domain.Fact{Kind: domain.FactFailed, PaymentID: "p"}},
		{ID: "applied", Reference: order, Fact: domain.Fact{Kind: domain.FactFailed, PaymentID: "p"}},
		{ID: "waits at its order", Reference: order, Fact: domain.Fact{Kind: domain.FactRefunded, PaymentID: "p", RefundID: "r", Amount: domain.Money{AmountMinor: 1, Currency: "EUR"}}},
		{ID: "of no order at all", Reference: "subscription 1", Fact: domain.Fact{Kind: "subscription.renewed", PaymentID: "p"}},
	} {
		if err := p.orders.Receive(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	stray := func(limit int32) string {
		t.Helper()
		rows, err := doctor.Stray(t.Context(), p.db, limit)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, row := range rows {
			ids = append(ids, row.EventID)
			if row.EventID == "of nobody's order" && (row.Reference != nobodys || row.Provider != "simulated") {
				t.Errorf("%+v does not say what it is about", row)
			}
		}
		return strings.Join(ids, ", ")
	}
	if got := stray(20); got != "of nobody's order, of no order at all" {
		t.Errorf("stray are %s", got)
	}
	if got := stray(1); got != "of nobody's order" {
		t.Errorf("the first of them is %s", got)
	}
	if report := p.check(t, domain.TenantID{}); !report.Healthy() {
		t.Errorf("a stray event is a violation: %+v", *report.Violations[0])
	}
	p.d.Exec(t, `UPDATE ops.payment_events SET tenant_id = NULL, processed_at = NULL, result = NULL WHERE event_id = 'applied'`) // as if it had been early
	if got := stray(20); got != "of nobody's order, applied, of no order at all" {
		t.Errorf("before it is applied stray are %s", got)
	}
	if _, err := p.orders.Reconcile(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if got := stray(20); got != "of nobody's order, of no order at all" {
		t.Errorf("once it is applied stray are %s", got)
	}
}
