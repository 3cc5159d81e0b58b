package doctor_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"countersign/internal/domain"
)

// damage is what befell the books, and what the doctor is to find.
type damage struct {
	name string
	sql  []string
	want []string
	says string // part of the first message
}

// damages are what can befall a tenant's books, by hand or by a defect. Each states all that the
// doctor has to say about it.
var damages = []damage{
	{
		name: "an invoice is deleted",
		sql:  []string{`DELETE FROM invoice_lines WHERE invoice_id = @a2`, `DELETE FROM invoices WHERE id = @a2`},
		want: []string{"SERIES_CONTIGUOUS serA"}, says: "no number 2",
	},
	{
		name: "the first invoice is deleted",
		sql:  []string{`DELETE FROM invoice_lines WHERE invoice_id = @a1`, `DELETE FROM invoices WHERE id = @a1`},
		want: []string{"SERIES_CONTIGUOUS serA"}, says: "no number 1",
	},
	{
		name: "numbers are left out",
		sql: []string{
			`UPDATE invoices SET sequence = 8 WHERE id = @a3`,
			`UPDATE series_counters SET next_number = 9 WHERE series_id = @serA`,
		},
		want: []string{"SERIES_CONTIGUOUS serA"}, says: "no number 3 to 7",
	},
	{
		name: "a number is given twice",
		sql: []string{
			`UPDATE invoices SET sequence = 2 WHERE id = @a3`,
			`UPDATE series_counters SET next_number = 3 WHERE series_id = @serA`,
		},
		want: []string{"SERIES_CONTIGUOUS a3"}, says: "number 2",
	},
	{
		name: "an entry of the ledger is deleted",
		sql:  []string{`DELETE FROM series_entries WHERE series_id = @serB AND first_number = 2`},
		want: []string{"LEDGER_RECORDED serB", "SERIES_CONTIGUOUS serB"}, says: "has entries for 3 numbers, and its record says 6",
	},
	{
		name: "an entry of the ledger is cut short",
		sql:  []string{`UPDATE series_entries SET last_number = 3 WHERE series_id = @serB AND first_number = 2`},
		want: []string{"LEDGER_RECORDED serB", "SERIES_CONTIGUOUS serB"},
	},
	{
		name: "the last entry of the ledger is deleted",
		sql:  []string{`DELETE FROM series_entries WHERE series_id = @serB AND first_number = 5`},
		want: []string{"COUNTER_MATCHES_DATA serB", "LEDGER_RECORDED serB"}, says: "the counter is at 8, the last number is 4",
	},
	{
		name: "an entry of the ledger holds an invoice's number",
		sql:  []string{`UPDATE series_entries SET first_number = 1 WHERE series_id = @serB AND first_number = 2`},
		want: []string{"LEDGER_RECORDED serB", "SERIES_CONTIGUOUS b1"},
	},
	{
		name: "an invoice has the number of an entry",
		sql:  []string{`UPDATE invoices SET sequence = 6 WHERE id = @b1`},
		want: []string{"SERIES_CONTIGUOUS b1", "SERIES_CONTIGUOUS serB"},
	},
	{
		name: "the record of a change is lost",
		sql:  []string{`DELETE FROM series_changes WHERE series_id = @serB`},
		want: []string{"LEDGER_RECORDED serB"}, says: "its record says 0",
	},
	{
		name: "an entry of the ledger is dated in another period",
		sql:  []string{`UPDATE series_entries SET period_start = '2026-01-01' WHERE series_id = @serB AND first_number = 5`},
		want: []string{"COUNTER_MATCHES_DATA serB", "LEDGER_RECORDED serB", "LEDGER_RECORDED serB", "NUMBER_IN_ITS_PERIOD serB", "PERIOD_RECORDED serB", "SERIES_CONTIGUOUS serB"},
	},
	{
		name: "an operation changed a series and made an invoice",
		sql:  []string{`UPDATE invoices SET operation_id = (SELECT operation_id FROM series_changes WHERE series_id = @serB) WHERE id = @b1`},
		want: []string{"OPERATION_ONCE serB b1"},
	},
	{
		name: "an invoice is dated back",
		sql:  []string{`UPDATE invoices SET issue_date = issue_date - 1 WHERE id = @a2`},
		want: []string{"SERIES_CHRONOLOGICAL a2"}, says: "after a number that was issued on",
	},
	{
		name: "a printed number is copied",
		sql:  []string{`UPDATE invoices SET number = 'A-00002' WHERE id = @a3`},
		want: []string{"NUMBER_UNIQUE a2 a3"}, says: "A-00002 is on 2 invoices",
	},
	{
		name: "a series prints the number of another",
		sql:  []string{`UPDATE invoices SET number = 'A-00001' WHERE id = @b1`},
		want: []string{"NUMBER_UNIQUE a1 b1"},
	},
	{
		name: "a total is changed",
		sql:  []string{`UPDATE invoices SET total_minor = total_minor + 1 WHERE id = @a1`},
		want: []string{"TOTAL_IS_SUM_OF_LINES a1"}, says: "the total is 9001, its lines and rounding sum to 9000",
	},
	{
		name: "a line is lost",
		sql:  []string{`DELETE FROM invoice_lines WHERE invoice_id = @a1 AND position = 2`},
		want: []string{"TOTAL_IS_SUM_OF_LINES a1"}, says: "9900",
	},
	{
		name: "all lines are lost",
		sql:  []string{`DELETE FROM invoice_lines WHERE invoice_id = @b1`},
		want: []string{"TOTAL_IS_SUM_OF_LINES b1"}, says: "sum to 0",
	},
	{
		name: "a line's price is changed by less than a cent",
		sql: []string{`UPDATE invoice_lines SET unit_price = unit_price + 0.004, exact_amount = quantity * (unit_price + 0.004)
			WHERE invoice_id = @a1 AND position = 1`},
		want: []string{"TOTAL_IS_SUM_OF_LINES a1"}, says: "9000.008",
	},
	{
		name: "a rounding is changed",
		sql:  []string{`UPDATE invoices SET rounding_adjustment = -0.5 WHERE id = @a1`},
		want: []string{"TOTAL_IS_SUM_OF_LINES a1"},
	},
	{
		name: "the last invoice is deleted",
		sql:  []string{`DELETE FROM invoice_lines WHERE invoice_id = @a3`, `DELETE FROM invoices WHERE id = @a3`},
		want: []string{"COUNTER_MATCHES_DATA serA"}, says: "the counter is at 4, the last number is 2",
	},
	{
		name: "a counter is restored behind its invoices",
		sql:  []string{`UPDATE series_counters SET next_number = 2 WHERE series_id = @serA`},
		want: []string{"COUNTER_MATCHES_DATA serA"},
	},
	{
		name: "the counter of an unused series has moved",
		sql:  []string{`UPDATE series_counters SET next_number = 2 WHERE series_id = @serC`},
		want: []string{"COUNTER_MATCHES_DATA serC"}, says: "the last number is 0",
	},
	{
		name: "a counter is in another period",
		sql:  []string{`UPDATE series_counters SET period_start = period_start + 1 WHERE series_id = @serA`},
		want: []string{"COUNTER_MATCHES_DATA serA", "PERIOD_RECORDED serA"},
	},
	{
		name: "a counter is in a period that its last date is before",
		sql: []string{
			`UPDATE series_counters SET period_start = last_issue_date + 1, next_number = 1 WHERE series_id = @serA`,
			`INSERT INTO series_periods SELECT tenant_id, series_id, '0001-01-01', 1, 3, now() FROM series_counters WHERE series_id = @serA`,
		},
		want: []string{"COUNTER_MATCHES_DATA serA"}, says: "its last issue date is",
	},
	{
		name: "a period is recorded while the counter is in it",
		sql:  []string{`INSERT INTO series_periods SELECT tenant_id, series_id, period_start, 1, 3, now() FROM series_counters WHERE series_id = @serA`},
		want: []string{"PERIOD_RECORDED serA"}, says: "the counter is in it",
	},
	{
		name: "a record of a period that numbered nothing",
		sql:  []string{`INSERT INTO series_periods SELECT tenant_id, series_id, '0001-01-01'::date - 1, 1, 2, now() FROM series_counters WHERE series_id = @serA`},
		want: []string{"PERIOD_RECORDED serA"}, says: "ends at 2, its last number is 0",
	},
	{
		name: "an invoice is numbered in a later period",
		sql:  []string{`UPDATE invoices SET period_start = '2026-01-01', sequence = 1 WHERE id = @a3`, `UPDATE series_counters SET next_number = 3 WHERE series_id = @serA`},
		want: []string{"NUMBER_IN_ITS_PERIOD a3", "PERIOD_RECORDED serA"}, says: "not in the period that begins on 2026-01-01",
	},
	{
		name: "a counter is lost",
		sql:  []string{`DELETE FROM series_counters WHERE series_id = @serB`},
		want: []string{"COUNTER_MATCHES_DATA serB"}, says: "has no counter",
	},
	{
		name: "a counter's date is behind its last invoice",
		sql:  []string{`UPDATE series_counters SET last_issue_date = last_issue_date - 1 WHERE series_id = @serA`},
		want: []string{"COUNTER_MATCHES_DATA serA"}, says: "last issue date is",
	},
	{
		name: "a counter has lost its date",
		sql:  []string{`UPDATE series_counters SET last_issue_date = NULL, issue_date_ends = NULL WHERE series_id = @serA`},
		want: []string{"COUNTER_MATCHES_DATA serA"}, says: "has no last issue date",
	},
	{
		name: "an operation made two invoices",
		sql:  []string{`UPDATE invoices SET operation_id = (SELECT operation_id FROM invoices WHERE id = @a1) WHERE id = @b1`},
		want: []string{"OPERATION_ONCE a1 b1"}, says: "stands in 2 rows",
	},
	{
		name: "an operation made a customer and an invoice",
		sql:  []string{`UPDATE invoices SET operation_id = (SELECT operation_id FROM customers WHERE id = @cus) WHERE id = @a1`},
		want: []string{"OPERATION_ONCE cus a1"},
	},
	{
		name: "an operation made a series and an invoice",
		sql:  []string{`UPDATE invoices SET operation_id = (SELECT operation_id FROM invoice_series WHERE id = @serA) WHERE id = @a1`},
		want: []string{"OPERATION_ONCE serA a1"},
	},
	{
		name: "two things at once",
		sql: []string{
			`UPDATE invoices SET number = 'A-00001', total_minor = 1 WHERE id = @b1`,
			`UPDATE series_counters SET next_number = 7 WHERE series_id = @serC`,
		},
		want: []string{"COUNTER_MATCHES_DATA serC", "NUMBER_UNIQUE a1 b1", "TOTAL_IS_SUM_OF_LINES b1"},
	},
}

// The doctor names what is broken and the ids it is about, all of it and nothing else: whatever
// happens to a tenant's books is in that tenant's report and in no other's. An invariant that no
// damage here breaks is one that nobody has seen found.
func TestDoctorNamesEachDamage(t *testing.T) {
	t.Parallel()
	p := newPractice(t)
	// The constraints that would refuse the damage; a restored dump or a defect may do without.
	for _, name := range []string{
		"invoices DROP CONSTRAINT invoices_sequence_key", "invoices DROP CONSTRAINT invoices_number_key", "invoices DROP CONSTRAINT invoices_operation_key",
		"orders DROP CONSTRAINT orders_idempotency_key", "order_history DROP CONSTRAINT order_history_pkey",
		"order_history DROP CONSTRAINT order_history_operation_key", "refunds DROP CONSTRAINT refunds_provider_refund_key",
	} {
		p.d.Exec(t, "ALTER TABLE "+name)
	}
	p.d.Exec(t, "DROP INDEX captures_one_applied_key")
	for _, check := range []string{
		"draft_not_numbered", "parties_frozen", "numbered_whole", "settled_exactly", "settled_is_final",
		"paid_within_total", "credited_within_total", "refund_due_within_credit",
	} {
		p.d.Exec(t, "ALTER TABLE invoices DROP CONSTRAINT invoices_"+check)
	}
	p.d.Exec(t, "ALTER TABLE invoice_lines DROP CONSTRAINT invoice_lines_tax_rounded")
	healthy := p.newBooks(t, "healthy")
	all, broken := 0, map[string]bool{}
	p.addUsage(t, healthy)
	p.addLives(t, healthy)
	for i, c := range slices.Concat(damages, lifeDamages, orderDamages, usageDamages) {
		b := p.newBooks(t, fmt.Sprintf("case-%d", i))
		if i >= len(damages) && i < len(damages)+len(lifeDamages) {
			p.addLives(t, b)
		}
		if i >= len(damages)+len(lifeDamages)+len(orderDamages) {
			p.addUsage(t, b)
		}
		if found := b.findings(t, p.check(t, b.tenant)); len(found) > 0 {
			t.Fatalf("before %s: %v", c.name, found)
		}
		for _, sql := range c.sql {
			if n := p.changes(t, sql, b); n < 1 || n > 1 && !strings.HasPrefix(sql, "DELETE") {
				t.Fatalf("%s: changed %d rows: %s", c.name, n, sql)
			}
		}
		report := p.check(t, b.tenant)
		if found := b.findings(t, report); !slices.Equal(found, c.want) {
			t.Errorf("%s: the doctor finds %v, want %v", c.name, found, c.want)
		}
		if len(report.Violations) > 0 && !strings.Contains(report.Violations[0].Message, c.says) {
			t.Errorf("%s: the doctor says %q, want %q in it", c.name, report.Violations[0].Message, c.says)
		}
		for _, v := range report.Violations {
			broken[v.Invariant] = true
		}
		all += len(c.want)
	}
	if found := healthy.findings(t, p.check(t, healthy.tenant)); len(found) > 0 {
		t.Errorf("a healthy tenant among damaged ones: %v", found)
	}
	report := p.check(t, domain.TenantID{})
	if len(report.Violations) != all {
		t.Errorf("of all tenants the doctor finds %d violations, want %d", len(report.Violations), all)
	}
	for _, invariant := range report.Invariants {
		if !broken[invariant] {
			t.Errorf("nothing here breaks %s", invariant)
		}
		delete(broken, invariant)
	}
	for invariant := range broken {
		t.Errorf("the report does not list %s, which it found broken", invariant)
	}
}

// changes runs a statement as the owner and counts the rows it changed.
func (p *practice) changes(t *testing.T, sql string, b *books) int64 {
	t.Helper()
	tag, err := p.d.Owner(t).Exec(t.Context(), sql, b.ids)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return tag.RowsAffected()
}
