package doctor_test

import (
	"fmt"
	"testing"
	"time"

	"countersign/internal/domain"
	"countersign/internal/invoicing"
	"countersign/internal/metering"
)

// addUsage meters four keys. key1 is revoked, and its month is on the invoice acc, which accrues
// (set1); key2 lives on, with usage that nothing has settled, and its last month is closed and on
// the invoice last (set2); key3 is of a customer that is exempt by exm, and what it had used is
// waived (set3, on the invoice waived); key4 had used less than a cent in the closed month, which is
// skipped (set4), and nothing in this one (set5).
func (p *practice) addUsage(t *testing.T, b *books) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now().UTC()
	lastMonth := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, -2)
	customer := b.ids["cus"].(domain.CustomerID)
	exempt, err := p.service.CreateCustomer(ctx, b.caller, invoicing.CreateCustomerInput{Name: "Bishop & Knight", Currency: "EUR"})
	must(err)
	exemption, err := p.usage.GrantExemption(ctx, b.caller, metering.GrantBillingExemptionInput{CustomerID: exempt.Value.ID, Reason: "a partner"})
	must(err)
	b.keep("exm", exemption.Value.ID)
	b.ids["month"], b.ids["lastMonth"] = domain.MonthOf(now, time.UTC), domain.MonthOf(lastMonth, time.UTC)

	key := func(name string, of domain.CustomerID, price string) domain.APIKeyID {
		t.Helper()
		var exact domain.Decimal
		must(exact.UnmarshalGQL(price))
		out, err := p.usage.CreateKey(ctx, b.caller, metering.CreateAPIKeyInput{CustomerID: of, Name: name, UnitPrice: exact})
		must(err)
		b.keep(name, out.Value.ID)
		return out.Value.ID
	}
	use := func(of domain.APIKeyID, quantity int64, at time.Time) {
		t.Helper()
		out, err := p.usage.RecordUsage(ctx, b.caller, metering.RecordUsageInput{Events: []metering.UsageEventInput{
			{ID: fmt.Sprint(of, at), APIKeyID: of, Quantity: quantity, OccurredAt: at},
		}})
		must(err)
		if out.Value.Accepted != 1 {
			t.Fatalf("the usage was refused: %v", out.Value.Refused)
		}
	}
	revoke := func(id domain.APIKeyID) metering.Revoked {
		t.Helper()
		out, err := p.usage.Revoke(ctx, b.caller, metering.RevokeAPIKeyInput{APIKeyID: id})
		must(err)
		return out.Value
	}
	key1, key2, key3, key4 := key("key1", customer, "7.7"), key("key2", customer, "100"), key("key3", exempt.Value.ID, "9"), key("key4", customer, "0.4")
	use(key1, 2, now)
	use(key2, 3, now)
	use(key2, 5, lastMonth)
	use(key3, 1, now)
	folded := revoke(key1).Settlement
	b.keep("set1", folded.ID)
	b.keep("acc", *folded.InvoiceID)
	closed, err := p.usage.CloseMonth(ctx, b.tenant, customer, b.ids["lastMonth"].(domain.Month))
	must(err)
	b.keep("last", closed.Invoice.ID)
	var set2 domain.SettlementID
	must(p.d.Pool.QueryRow(ctx, `SELECT id FROM settlements WHERE tenant_id = $1 AND api_key_id = $2`, b.tenant, key2).Scan(&set2))
	b.keep("set2", set2)
	waived := revoke(key3).Settlement
	b.keep("set3", waived.ID)
	b.keep("waived", *waived.InvoiceID)
	use(key4, 1, lastMonth) // late: its month is closed
	late := revoke(key4)
	b.keep("set5", late.Settlement.ID)
	for _, s := range late.Settlements {
		if s.ID != late.Settlement.ID {
			b.keep("set4", s.ID)
		}
	}
}

// usageDamages are what can befall a tenant's usage and what became of it.
var usageDamages = []damage{
	{
		name: "an event has another quantity",
		sql:  []string{`UPDATE usage_events SET quantity = quantity + 1 WHERE settlement_id = @set1`},
		want: []string{"USAGE_CONSERVED set1 key1"}, says: "it settles 2 units, the usage it is the sum of is 3",
	},
	{
		name: "an event is lost",
		sql:  []string{`DELETE FROM usage_events WHERE settlement_id = @set2`},
		want: []string{"USAGE_CONSERVED set2 key2"}, says: "it settles 5 units, the usage it is the sum of is 0",
	},
	{
		name: "an event that is settled is said not to be",
		sql:  []string{`UPDATE usage_events SET settlement_id = NULL WHERE settlement_id = @set2`},
		want: []string{"USAGE_CONSERVED set2 key2"},
	},
	{
		name: "a settlement has another key's usage",
		sql:  []string{`UPDATE usage_events SET api_key_id = @key2 WHERE settlement_id = @set1`},
		want: []string{"USAGE_CONSERVED set1 key1"}, says: "usage of another key or month",
	},
	{
		name: "a settlement has another month's usage",
		sql:  []string{`UPDATE usage_events SET month = @lastMonth WHERE settlement_id = @set1`},
		want: []string{"USAGE_CONSERVED set1 key1"}, says: "usage of another key or month",
	},
	{
		name: "a settlement has another price than its line",
		sql:  []string{`UPDATE settlements SET unit_price = 7.8, amount = 15.6 WHERE id = @set1`},
		want: []string{"USAGE_CONSERVED set1 key1"}, says: "it is FOLDED with 15.6, and stands on invoices 1 times with 15.4",
	},
	{
		name: "a settlement's line is lost",
		sql:  []string{`DELETE FROM invoice_lines WHERE settlement_id = @set1`},
		want: []string{"TOTAL_IS_SUM_OF_LINES acc", "USAGE_CONSERVED set1 key1"},
	},
	{
		name: "a settlement has two lines",
		sql: []string{`INSERT INTO invoice_lines (tenant_id, invoice_id, position, description, quantity, unit_price, exact_amount, settlement_id, settlement_round)
			SELECT tenant_id, @last, 99, description, 0, unit_price, 0, settlement_id, 2 FROM invoice_lines WHERE settlement_id = @set1`},
		want: []string{"USAGE_CONSERVED set1 key1"}, says: "stands on invoices 2 times with 15.4",
	},
	{
		name: "a settlement names another invoice than its line's",
		sql:  []string{`UPDATE settlements SET invoice_id = @last WHERE id = @set1`},
		want: []string{"USAGE_CONSERVED set1 key1"},
	},
	{
		name: "a settlement is in another round than its line",
		sql:  []string{`UPDATE settlements SET round = 2 WHERE id = @set1`},
		want: []string{"USAGE_CONSERVED set1 key1"},
	},
	{
		name: "an invoice is voided, and its settlement not given back",
		sql:  []string{`UPDATE invoices SET status = 'VOID', void_reason = 'x', voided_at = updated_at WHERE id = @acc`},
		want: []string{"INVOICE_HISTORY_LEGAL acc", "USAGE_CONSERVED set1 key1"}, says: "the invoice is VOID, and nothing says how it came there",
	},
	{
		name: "a settlement is pending, and billed",
		sql:  []string{`UPDATE settlements SET outcome = 'PENDING', invoice_id = NULL, settled_at = NULL WHERE id = @set1`},
		want: []string{"USAGE_CONSERVED set1 key1"}, says: "it is PENDING, and stands on invoices 1 times",
	},
	{
		name: "a cent and more is skipped",
		sql:  []string{`UPDATE settlements SET unit_price = 1, amount = 1 WHERE id = @set4`},
		want: []string{"USAGE_CONSERVED set4 key4"}, says: "it is SKIPPED_SUB_CENT with 1",
	},
	{
		name: "what was used is said to be nothing",
		sql:  []string{`UPDATE settlements SET outcome = 'NOTHING_TO_BILL' WHERE id = @set4`},
		want: []string{"USAGE_CONSERVED set4 key4"}, says: "it is NOTHING_TO_BILL with 0.4",
	},

	{
		name: "a revoked key has usage that nothing settles",
		sql:  []string{`UPDATE usage_events SET api_key_id = @key1 WHERE api_key_id = @key2 AND settlement_id IS NULL`},
		want: []string{"REVOKED_KEY_SETTLED key1"}, says: "1 of its events are not settled",
	},
	{
		name: "a settlement is pending for an hour",
		sql:  []string{`UPDATE settlements SET outcome = 'PENDING', settled_at = NULL, created_at = created_at - interval '61 minutes' WHERE id = @set5`},
		want: []string{"SETTLEMENT_PLACED_IN_TIME set5"}, says: "it is pending since ",
	},
	{
		name: "a settlement is on its way",
		sql:  []string{`UPDATE settlements SET outcome = 'PENDING', settled_at = NULL, created_at = created_at - interval '50 minutes' WHERE id = @set5`},
	},

	{
		name: "an invoice is waived by another customer's exemption",
		sql:  []string{`UPDATE billing_exemptions SET customer_id = @cus WHERE id = @exm`},
		want: []string{"WAIVE_HAS_EVIDENCE waived exm"}, says: "the exemption of another customer",
	},
	{
		name: "a settlement is waived by nothing",
		sql:  []string{`UPDATE settlements SET exemption_id = NULL WHERE id = @set3`},
		want: []string{"WAIVE_HAS_EVIDENCE set3"}, says: "names no exemption",
	},
	{
		name: "a month is closed, and its invoice goes on",
		sql:  []string{`UPDATE billing_periods SET closed_at = ends_at WHERE tenant_id = (SELECT tenant_id FROM invoices WHERE id = @acc) AND customer_id = @cus AND month = @month`},
		want: []string{"CLOSED_MONTH_HAS_NO_OPEN_INVOICE acc"}, says: "is closed, and its invoice is open",
	},

	{
		name: "an operation granted an exemption and made a key",
		sql:  []string{`UPDATE api_keys SET operation_id = (SELECT operation_id FROM billing_exemptions WHERE id = @exm) WHERE id = @key1`},
		want: []string{"OPERATION_ONCE exm key1"}, says: "stands in 2 rows",
	},
	{
		name: "an operation granted an exemption and ended it",
		sql: []string{`UPDATE billing_exemptions SET ended_by = granted_by, ended_at = granted_at, end_operation_id = operation_id, end_fingerprint = operation_fingerprint
			WHERE id = @exm`},
		want: []string{"OPERATION_ONCE exm exm"},
	},
	{
		name: "an operation revoked a key and moved an invoice",
		sql: []string{`UPDATE invoice_history SET operation_id = (SELECT operation_id FROM api_key_revocations WHERE api_key_id = @key1)
			WHERE invoice_id = @last AND position = 1`},
		want: []string{"OPERATION_ONCE key1 last"},
	},
}
