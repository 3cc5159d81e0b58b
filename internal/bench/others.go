package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// floor is what one client alone waits for: the least that the HTTP path costs, a request that does
// nothing but say who calls.
func (b *stand) floor(ctx context.Context) (result, error) {
	return b.measured(ctx, b.on, 1, [][]byte{b.on.request(`{ __typename }`, nil)}, `"Query"`)
}

// large measures the hot series at ten thousand invoices, or as many as there are already, and at so
// many: a table's size must not be felt.
func (b *stand) large(ctx context.Context, invoices int) (l large, err error) {
	connections := b.connections[len(b.connections)-1]
	for _, at := range []struct {
		rows int
		have *int
		into *result
	}{{10_000, &l.Few, &l.Small}, {invoices, &l.Many, &l.Large}} {
		if *at.have, err = b.fill(ctx, at.rows); err != nil {
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

// fill brings the table to so many invoices, if it has fewer, in a series that nothing else numbers
// in, and says how many it has then.
func (b *stand) fill(ctx context.Context, rows int) (have int, err error) {
	err = b.owner(ctx, func(conn *pgx.Conn) error {
		if err := conn.QueryRow(ctx, "SELECT count(*) FROM invoices").Scan(&have); err != nil {
			return err
		}
		// It takes its time, and what the copies refer to is there.
		if _, err := conn.Exec(ctx, "SET statement_timeout = 0; SET session_replication_role = replica"); err != nil {
			return err
		}
		for have < rows {
			n := min(rows-have, 250_000)
			for _, table := range []string{"invoices", "invoice_lines"} {
				sql, err := copies[table].sql(ctx, conn, table)
				if err != nil {
					return err
				}
				if _, err := conn.Exec(ctx, sql, have+1, have+n); err != nil {
					return err
				}
			}
			have += n
		}
		_, err := conn.Exec(ctx, "VACUUM ANALYZE")
		return err
	})
	return have, err
}

// rising is the id of the nth copy: ids rise with time, as the product's do.
const rising = "lpad(to_hex(n), 32, '0')::uuid"

// copies say how an invoice and its lines are copied, as numbers of a series of their own: what
// differs, and which rows are the model.
var copies = map[string]copied{
	"invoices": {map[string]string{
		"id": rising, "operation_id": rising, "sequence": "n", "number": "'LARGE-' || n",
		"series_id": "(SELECT s.id FROM invoice_series s WHERE s.tenant_id = model.tenant_id AND s.code = 'CN')",
	}, "model.id = " + modelID},
	"invoice_lines": {map[string]string{"invoice_id": rising}, "model.invoice_id = " + modelID},
}

const modelID = "(SELECT id FROM invoices WHERE series_id IS NOT NULL AND kind = 'DIRECT' AND number NOT LIKE 'LARGE-%' ORDER BY id DESC LIMIT 1)"

type copied struct {
	differs map[string]string
	model   string
}

// sql copies the model, whatever columns it has, as the copies $1 to $2.
func (c copied) sql(ctx context.Context, conn *pgx.Conn, table string) (string, error) {
	rows, _ := conn.Query(ctx, "SELECT attname FROM pg_attribute WHERE attrelid = $1::text::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum", table)
	columns, err := pgx.CollectRows(rows, pgx.RowTo[string])
	values := make([]string, len(columns))
	for i, column := range columns {
		values[i] = cmp.Or(c.differs[column], "model."+column)
	}
	return fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s model, generate_series($1::bigint, $2::bigint) n WHERE %s",
		table, strings.Join(columns, ", "), strings.Join(values, ", "), table, c.model), err
}

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
