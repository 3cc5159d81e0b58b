-- name: InsertOrder :one
-- The order, its lines, its first payment attempt and the first row of its history. The unique
-- index on the key decides between two first requests: the loser reads the winner's order in a new
-- statement and calls no provider.
WITH lines AS (
    INSERT INTO order_lines (tenant_id, order_id, position, product_id, name, quantity, unit_price_minor, amount_minor, takes_stock)
    SELECT @tenant_id::uuid, @id::uuid, line.position, line.product_id, line.name, line.quantity, line.unit_price_minor, line.amount_minor, line.takes_stock
    FROM ROWS FROM (
        unnest(@line_product_ids::uuid[]), unnest(@line_names::text[]), unnest(@line_quantities::integer[]),
        unnest(@line_unit_prices_minor::bigint[]), unnest(@line_amounts_minor::bigint[]), unnest(@line_takes_stock::boolean[])
    ) WITH ORDINALITY AS line (product_id, name, quantity, unit_price_minor, amount_minor, takes_stock, position)
), attempt AS (
    INSERT INTO payment_attempts (tenant_id, id, order_id, ordinal, provider, method, status, created_at, updated_at)
    VALUES (@tenant_id, @attempt_id::uuid, @id, 1, @provider::text, @method::text, 'PENDING', @created_at, @updated_at)
), history AS (
    INSERT INTO order_history (
        tenant_id, id, order_id, position, event, to_status, operation_id, operation_fingerprint, moved_by, moved_at
    )
    VALUES (@tenant_id, @history_id::uuid, @id, 1, 'PLACED', 'PENDING', @operation_id, @operation_fingerprint, @created_by, @created_at)
)
INSERT INTO orders (
    tenant_id, id, customer_id, idempotency_key, status, currency, total_minor, refunded_minor,
    operation_id, operation_fingerprint, created_by, created_at, updated_at
)
VALUES (
    @tenant_id, @id, @customer_id, @idempotency_key, 'PENDING', @currency, @total_minor, 0,
    @operation_id, @operation_fingerprint, @created_by, @created_at, @updated_at
)
RETURNING *;

-- name: FindOrderOfKey :one
SELECT * FROM orders WHERE tenant_id = @tenant_id AND customer_id = @customer_id AND idempotency_key = @idempotency_key;

-- name: GetOrders :many
SELECT * FROM orders WHERE tenant_id = @tenant_id AND id = ANY(sqlc.slice('ids'));

-- name: ListOrders :many
-- In order of creation, a query for each filter, as of invoices.
SELECT * FROM orders
WHERE tenant_id = @tenant_id AND id > @after_id AND id < @before_id
ORDER BY id
LIMIT @row_limit;

-- name: ListOrdersBackward :many
SELECT * FROM orders
WHERE tenant_id = @tenant_id AND id > @after_id AND id < @before_id
ORDER BY id DESC
LIMIT @row_limit;

-- name: ListOrdersToLookAt :many
-- Those that a person has to look at, in order of creation, from the partial index.
SELECT * FROM orders
WHERE tenant_id = @tenant_id AND attention IS NOT NULL AND id > @after_id AND id < @before_id
ORDER BY id
LIMIT @row_limit;

-- name: ListOrdersToLookAtBackward :many
SELECT * FROM orders
WHERE tenant_id = @tenant_id AND attention IS NOT NULL AND id > @after_id AND id < @before_id
ORDER BY id DESC
LIMIT @row_limit;

-- name: ListOrdersOfStatus :many
SELECT * FROM orders
WHERE tenant_id = @tenant_id AND (status, tenant_id, id) > (@status::text, @tenant_id, @after_id::uuid)
  AND (status, tenant_id, id) < (@status::text, @tenant_id, @before_id::uuid)
ORDER BY status, id
LIMIT @row_limit;

-- name: ListOrdersOfStatusBackward :many
SELECT * FROM orders
WHERE tenant_id = @tenant_id AND (status, tenant_id, id) > (@status::text, @tenant_id, @after_id::uuid)
  AND (status, tenant_id, id) < (@status::text, @tenant_id, @before_id::uuid)
ORDER BY status DESC, id DESC
LIMIT @row_limit;

-- name: ListOrdersOfCustomers :many
-- A page for each of the customers, in one statement.
SELECT orders.* FROM customers parent
CROSS JOIN LATERAL (
    SELECT * FROM orders o
    WHERE o.tenant_id = @tenant_id AND o.customer_id = parent.id
      AND o.id > @after_id AND o.id < @before_id
    ORDER BY o.id
    LIMIT @row_limit
) AS orders
WHERE parent.tenant_id = @tenant_id AND parent.id = ANY(sqlc.slice('customer_ids'))
ORDER BY orders.customer_id, orders.id;

-- name: ListOrdersOfCustomersBackward :many
SELECT orders.* FROM customers parent
CROSS JOIN LATERAL (
    SELECT * FROM orders o
    WHERE o.tenant_id = @tenant_id AND o.customer_id = parent.id
      AND o.id > @after_id AND o.id < @before_id
    ORDER BY o.id DESC
    LIMIT @row_limit
) AS orders
WHERE parent.tenant_id = @tenant_id AND parent.id = ANY(sqlc.slice('customer_ids'))
ORDER BY orders.customer_id, orders.id DESC;

-- name: ListOrdersOfCustomerOfStatus :many
SELECT orders.* FROM customers parent
CROSS JOIN (SELECT @status::text AS status OFFSET 0) AS wanted
CROSS JOIN LATERAL (
    SELECT * FROM orders o
    WHERE o.tenant_id = @tenant_id AND o.customer_id = parent.id
      AND (o.status, o.tenant_id, o.id) > (wanted.status, @tenant_id, @after_id::uuid)
      AND (o.status, o.tenant_id, o.id) < (wanted.status, @tenant_id, @before_id::uuid)
    ORDER BY o.status, o.id
    LIMIT @row_limit
) AS orders
WHERE parent.tenant_id = @tenant_id AND parent.id = @customer_id
ORDER BY orders.id;

-- name: ListOrdersOfCustomerOfStatusBackward :many
SELECT orders.* FROM customers parent
CROSS JOIN (SELECT @status::text AS status OFFSET 0) AS wanted
CROSS JOIN LATERAL (
    SELECT * FROM orders o
    WHERE o.tenant_id = @tenant_id AND o.customer_id = parent.id
      AND (o.status, o.tenant_id, o.id) > (wanted.status, @tenant_id, @after_id::uuid)
      AND (o.status, o.tenant_id, o.id) < (wanted.status, @tenant_id, @before_id::uuid)
    ORDER BY o.status DESC, o.id DESC
    LIMIT @row_limit
) AS orders
WHERE parent.tenant_id = @tenant_id AND parent.id = @customer_id
ORDER BY orders.id DESC;

-- name: ListOrderLines :many
SELECT * FROM order_lines
WHERE tenant_id = @tenant_id AND order_id = ANY(sqlc.slice('order_ids'))
ORDER BY order_id, position;

-- name: LockOrder :one
-- Whoever holds an order decides what the facts about its money do. NO KEY, so that rows that refer
-- to the order can be inserted meanwhile; what depends on it is read in later statements.
SELECT * FROM orders WHERE tenant_id = @tenant_id AND id = @id FOR NO KEY UPDATE;

-- name: MoveOrder :one
-- The guarded update of every move: the statuses it may start from, and the version it was decided
-- on. No row means that somebody else moved the order since it was read: read it again.
UPDATE orders
SET status = @to_status, refunded_minor = @refunded_minor,
    attention = CASE WHEN @clears_attention::boolean THEN NULL ELSE coalesce(sqlc.narg('attention'), attention) END,
    updated_at = @next_version,
    paid_at = CASE WHEN @to_status = 'PAID' THEN coalesce(paid_at, @moved_at::timestamptz) ELSE paid_at END,
    fulfilled_at = CASE WHEN @to_status = 'FULFILLED' THEN coalesce(fulfilled_at, @moved_at::timestamptz) ELSE fulfilled_at END,
    cancelled_at = CASE WHEN @to_status = 'CANCELLED' THEN coalesce(cancelled_at, @moved_at::timestamptz) ELSE cancelled_at END,
    refunded_at = CASE WHEN @to_status = 'REFUNDED' THEN coalesce(refunded_at, @moved_at::timestamptz) ELSE refunded_at END
WHERE tenant_id = @tenant_id AND id = @id
  AND status = ANY(sqlc.slice('allowed_statuses')) AND updated_at = @expected_updated_at
RETURNING *;

-- name: InsertOrderHistory :one
-- After MoveOrder in its transaction: the order's row is held, so the next position is free.
INSERT INTO order_history (
    tenant_id, id, order_id, position, event, from_status, to_status, detail, operation_id, operation_fingerprint, moved_by, moved_at
)
SELECT h.tenant_id, @id, h.order_id, max(h.position) + 1, @event, @from_status, @to_status, @detail, @operation_id, @operation_fingerprint, @moved_by, @moved_at
FROM order_history h
WHERE h.tenant_id = @tenant_id AND h.order_id = @order_id
GROUP BY h.tenant_id, h.order_id
RETURNING *;

-- name: FindOrderMove :one
SELECT * FROM order_history WHERE tenant_id = @tenant_id AND operation_id = @operation_id;

-- name: ListOrderHistory :many
SELECT * FROM order_history
WHERE tenant_id = @tenant_id AND order_id = ANY(sqlc.slice('order_ids'))
ORDER BY order_id, position;
