package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
)

// floor is what one client alone waits for: the least that the HTTP path costs, a request that does
// nothing but say who calls.
func (b *stand) floor(ctx context.Context) (result, error) {
	return b.measured(ctx, b.on, 1, [][]byte{b.on.request(`{ __typename }`, nil)}, `"Query"`)
}

// large measures the hot series at ten thousand invoices and at so many: a table's size must not
// be felt.
func (b *stand) large(ctx context.Context, invoices int) (l large, err error) {
	l.Invoices = invoices
	connections := b.connections[len(b.connections)-1]
	for _, at := range []struct {
		rows int
		into *result
	}{{10_000, &l.Small}, {invoices, &l.Large}} {
		if err := b.fill(ctx, at.rows); err != nil {
			return l, err
		}
		var results []result
		for range b.repeats {
			r, err := b.allocating(b.on)(ctx, connections, 1)
			if err != nil {
				return l, err
			}
			results = append(results, r)
		}
		*at.into = medians(results)
	}
	return l, nil
}

// fill brings the table to about so many invoices, in a series that nothing else numbers in.
func (b *stand) fill(ctx context.Context, rows int) error {
	return b.owner(ctx, func(conn *pgx.Conn) error {
		var have int
		if err := conn.QueryRow(ctx, "SELECT count(*) FROM invoices").Scan(&have); err != nil {
			return err
		}
		// It takes its time, and what the copies refer to is there.
		if _, err := conn.Exec(ctx, "SET statement_timeout = 0; SET session_replication_role = replica"); err != nil {
			return err
		}
		for have < rows {
			n := min(rows-have, 250_000)
			if _, err := conn.Exec(ctx, copyInvoices, n, have); err != nil {
				return err
			}
			have += n
		}
		_, err := conn.Exec(ctx, "VACUUM ANALYZE")
		return err
	})
}

// copyInvoices copies an invoice and its line $1 times, as numbers behind $2 of a series of their
// own, whatever columns they have.
const copyInvoices = `
WITH model AS (SELECT * FROM invoices WHERE series_id IS NOT NULL AND kind = 'DIRECT' LIMIT 1),
series AS (SELECT id FROM invoice_series WHERE code = 'CN' AND tenant_id = (SELECT tenant_id FROM model)),
copies AS (
	SELECT model.tenant_id, model.id AS of, lpad(to_hex($2::bigint + n), 32, '0')::uuid AS id, $2::bigint + n AS sequence FROM model, generate_series(1, $1::bigint) n
), lines AS (
	INSERT INTO invoice_lines SELECT (jsonb_populate_record(NULL::invoice_lines, to_jsonb(l) || jsonb_build_object('invoice_id', copies.id))).*
	FROM copies JOIN invoice_lines l ON l.tenant_id = copies.tenant_id AND l.invoice_id = copies.of
)
INSERT INTO invoices SELECT (jsonb_populate_record(NULL::invoices, to_jsonb(model) || jsonb_build_object('id', copies.id, 'series_id', series.id,
	'sequence', copies.sequence, 'number', 'LARGE-' || copies.sequence, 'operation_id', copies.id))).*
FROM model, series, copies`

// others measures orders, each charged at once by the simulated provider, and revocations at once.
func (b *stand) others(ctx context.Context, r *report) (err error) {
	connections := b.connections[len(b.connections)-1]
	requests := make([][]byte, 200_000)
	for n := range requests {
		requests[n] = b.on.request(`mutation ($input: PlaceOrderInput!) { placeOrder(input: $input) { order { id status } userErrors { code } } }`,
			map[string]any{"input": map[string]any{
				"idempotencyKey": "bench " + strconv.Itoa(n), "customerId": b.on.customer, "paymentMethod": "sim_ok",
				"items": []any{map[string]any{"productId": b.on.product, "quantity": 1}},
			}})
	}
	if r.Orders, err = b.load(ctx, b.on, connections, b.length, requests, `"PAID"`); err != nil {
		return fmt.Errorf("orders: %w", err)
	}
	r.Revocations, err = b.on.revoke(ctx, 20, 16)
	return err
}
