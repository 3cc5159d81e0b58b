package metering_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"countersign/internal/doctor"
	"countersign/internal/domain"
	"countersign/sqlc"
)

// conservation lists what is wrong with a database's usage, in exact numbers: a row in words for
// each thing. Nothing of it may be wrong at any moment.
const conservation = `
WITH metered AS (
    SELECT tenant_id, api_key_id, month, sum(quantity) AS all_of_it, coalesce(sum(quantity) FILTER (WHERE settlement_id IS NULL), 0) AS unsettled
    FROM usage_events GROUP BY 1, 2, 3
), settled AS (
    SELECT tenant_id, api_key_id, month, sum(quantity) AS quantity FROM settlements GROUP BY 1, 2, 3
), placed AS ( -- where each settlement stands on an invoice that counts
    SELECT l.*, i.status FROM invoice_lines l JOIN invoices i ON i.tenant_id = l.tenant_id AND i.id = l.invoice_id
    WHERE l.settlement_id IS NOT NULL AND i.status <> 'VOID'
)
SELECT format('key %s in %s: %s metered, %s unsettled, %s settled', api_key_id, month, all_of_it, unsettled, quantity)
FROM metered FULL JOIN settled USING (tenant_id, api_key_id, month)
WHERE coalesce(all_of_it, 0) <> coalesce(unsettled, 0) + coalesce(quantity, 0)
UNION ALL
SELECT format('settlement %s of %s is the sum of %s', s.id, s.quantity, coalesce(sum(e.quantity), 0))
FROM settlements s LEFT JOIN usage_events e ON e.tenant_id = s.tenant_id AND e.settlement_id = s.id AND e.api_key_id = s.api_key_id AND e.month = s.month
GROUP BY s.tenant_id, s.id, s.quantity HAVING s.quantity <> coalesce(sum(e.quantity), 0)
UNION ALL
SELECT format('settlement %s of %s is %s, on %s lines of %s (round %s)', s.id, s.amount, s.outcome, count(p), sum(p.exact_amount), s.round)
FROM settlements s LEFT JOIN placed p ON p.tenant_id = s.tenant_id AND p.settlement_id = s.id
GROUP BY s.tenant_id, s.id
HAVING CASE WHEN s.outcome IN ('FOLDED', 'FOLDED_WAIVED', 'BILLED_SEPARATELY')
            THEN count(p) <> 1 OR sum(p.exact_amount) <> s.amount OR max(p.settlement_round) <> s.round OR max(p.invoice_id::text) <> s.invoice_id::text
            ELSE count(p) <> 0 OR s.outcome = 'SKIPPED_SUB_CENT' AND s.amount >= 1 OR s.outcome = 'NOTHING_TO_BILL' AND s.quantity <> 0 END
UNION ALL
SELECT format('invoice %s totals %s, its lines %s and its rounding %s', i.id, i.total_minor, sum(l.exact_amount), i.rounding_adjustment)
FROM invoices i LEFT JOIN invoice_lines l ON l.tenant_id = i.tenant_id AND l.invoice_id = i.id AND l.position >= i.lines_from
GROUP BY i.tenant_id, i.id HAVING i.total_minor <> coalesce(sum(l.exact_amount), 0) + i.rounding_adjustment OR abs(i.rounding_adjustment) > 0.5
UNION ALL
SELECT format('invoice %s is %s in a month that is closed', i.id, i.status)
FROM invoices i JOIN billing_periods p ON p.tenant_id = i.tenant_id AND p.customer_id = i.customer_id AND p.month = i.usage_month
WHERE p.closed_at IS NOT NULL AND (i.status = 'OPEN' OR i.number IS NULL AND i.status <> 'VOID')
UNION ALL
SELECT format('invoice %s is waived by an exemption of somebody else', i.id)
FROM invoices i JOIN billing_exemptions e ON e.tenant_id = i.tenant_id AND e.id = i.exemption_id
WHERE e.customer_id <> i.customer_id OR e.granted_at > i.updated_at
UNION ALL
SELECT format('key %s is %s, with an announcement %s and %s settlements', k.id, k.status, r.settled_at, count(s))
FROM api_keys k
LEFT JOIN api_key_revocations r ON r.tenant_id = k.tenant_id AND r.api_key_id = k.id
LEFT JOIN settlements s ON s.tenant_id = k.tenant_id AND s.api_key_id = k.id
GROUP BY k.tenant_id, k.id, r.api_key_id, r.settled_at
HAVING (k.status = 'REVOKED') <> (r.settled_at IS NOT NULL) OR k.status = 'REVOKED' AND count(s) = 0`

// unfinished lists what may be so for a moment, and not once everything has been done.
const unfinished = `
SELECT format('settlement %s is pending', id) FROM settlements WHERE outcome = 'PENDING'
UNION ALL SELECT format('the revocation of %s is unfinished', api_key_id) FROM api_key_revocations WHERE settled_at IS NULL
UNION ALL SELECT format('the waive of %s is not verified', id) FROM invoices WHERE waived_by = 'EXEMPTION' AND waive_verified_at IS NULL
UNION ALL SELECT format('invoice %s is %s of a customer that is exempt: %s', i.id, i.status, e.id IS NOT NULL)
FROM invoices i
LEFT JOIN billing_exemptions e ON e.tenant_id = i.tenant_id AND e.customer_id = i.customer_id AND e.ended_at IS NULL
LEFT JOIN billing_periods p ON p.tenant_id = i.tenant_id AND p.customer_id = i.customer_id AND p.month = i.usage_month
WHERE i.status = 'OPEN' AND e.id IS NOT NULL OR i.waived_by = 'EXEMPTION' AND p.closed_at IS NULL AND e.id IS NULL`

// conserved fails unless every unit that was metered is in exactly one place, and every amount.
func (m *meter) conserved(t testing.TB) {
	t.Helper()
	for _, wrong := range m.list(t, conservation) {
		t.Error(wrong)
	}
}

// sound fails unless all is conserved, finished, and the doctor finds nothing.
func (m *meter) sound(t testing.TB) {
	t.Helper()
	m.conserved(t)
	for _, wrong := range m.list(t, unfinished) {
		t.Error(wrong)
	}
	report, err := doctor.Check(context.Background(), m.db, domain.TenantID{})
	check(t, err)
	for _, v := range report.Violations {
		t.Errorf("the doctor finds %s: %s %v", v.Invariant, v.Message, v.IDs)
	}
}

// owner is a connection that sees everything, whoever looks.
type owner struct {
	mu   sync.Mutex
	conn *pgx.Conn
}

// see reads as the owner.
func see[T any](t testing.TB, m *meter, read func(ctx context.Context, conn *pgx.Conn) (T, error)) T {
	t.Helper()
	m.owner.mu.Lock()
	defer m.owner.mu.Unlock()
	value, err := read(context.Background(), m.owner.conn)
	check(t, err)
	return value
}

// list reads a column of text.
func (m *meter) list(t testing.TB, sql string, args ...any) []string {
	t.Helper()
	return see(t, m, func(ctx context.Context, conn *pgx.Conn) ([]string, error) {
		rows, err := conn.Query(ctx, sql, args...)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, pgx.RowTo[string])
	})
}

// count counts rows.
func (m *meter) count(t testing.TB, from string, args ...any) int {
	t.Helper()
	return see(t, m, func(ctx context.Context, conn *pgx.Conn) (n int, err error) {
		err = conn.QueryRow(ctx, "SELECT count(*) FROM "+from, args...).Scan(&n)
		return n, err
	})
}

// invoices are the customer's, in the order they were made.
func (m *meter) invoices(t testing.TB) []*sqlc.Invoice {
	t.Helper()
	return see(t, m, func(ctx context.Context, conn *pgx.Conn) ([]*sqlc.Invoice, error) {
		return sqlc.New(conn).ListInvoicesOfCustomers(ctx, sqlc.ListInvoicesOfCustomersParams{
			TenantID: m.caller.TenantID, CustomerIds: []domain.CustomerID{m.customer}, BeforeID: highest(), RowLimit: 1000})
	})
}

func highest() (id domain.InvoiceID) {
	for i := range id {
		id[i] = 0xff
	}
	return id
}

// monthly is the customer's invoice of June.
func (m *meter) monthly(t testing.TB) *sqlc.Invoice {
	t.Helper()
	return see(t, m, func(ctx context.Context, conn *pgx.Conn) (*sqlc.Invoice, error) {
		month := june
		return sqlc.New(conn).FindMonthlyInvoice(ctx, sqlc.FindMonthlyInvoiceParams{TenantID: m.caller.TenantID, CustomerID: m.customer, UsageMonth: &month})
	})
}

// books are the customer's invoices in words, sorted: "USAGE OPEN 42", "RESIDUAL PENDING 3 #1".
func (m *meter) books(t testing.TB) (books []string) {
	t.Helper()
	for _, i := range m.invoices(t) {
		line := fmt.Sprintf("%s %s %d", i.Kind, i.Status, i.TotalMinor)
		if i.Sequence != nil {
			line += fmt.Sprintf(" #%d", *i.Sequence)
		}
		books = append(books, line)
	}
	slices.Sort(books)
	return books
}

// wantBooks fails unless the customer has exactly these invoices.
func (m *meter) wantBooks(t testing.TB, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := m.books(t); !slices.Equal(got, want) {
		t.Errorf("the customer has the invoices %q, want %q", got, want)
	}
}

// receipt is what the attempts to place a key's settlements came to, in words.
func (m *meter) receipt(t testing.TB, key domain.APIKeyID) []string {
	t.Helper()
	return m.list(t, `SELECT a.way || ': ' || a.result FROM settlement_attempts a
		JOIN settlements s ON s.tenant_id = a.tenant_id AND s.id = a.settlement_id
		WHERE s.api_key_id = $1 ORDER BY s.month, s.ordinal, a.position`, key)
}

// wantReceipt fails unless the attempts came to exactly this.
func (m *meter) wantReceipt(t testing.TB, key domain.APIKeyID, want ...string) {
	t.Helper()
	if got := m.receipt(t, key); !slices.Equal(got, want) {
		t.Errorf("the receipt says %q, want %q", got, want)
	}
}
