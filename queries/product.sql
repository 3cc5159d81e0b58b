-- name: InsertProduct :one
-- A product whose stock is counted is born with its shelf.
WITH shelf AS (
    INSERT INTO product_stock (tenant_id, product_id, available)
    SELECT @tenant_id::uuid, @id::uuid, @stock::bigint WHERE @tracks_stock
)
INSERT INTO products (
    tenant_id, id, sku, name, unit_price_minor, currency, active, tracks_stock,
    operation_id, operation_fingerprint, created_by, created_at, updated_at
)
VALUES (
    @tenant_id, @id, @sku, @name, @unit_price_minor, @currency, true, @tracks_stock,
    @operation_id, @operation_fingerprint, @created_by, @created_at, @updated_at
)
RETURNING *;

-- name: FindProductOfOperation :one
SELECT * FROM products WHERE tenant_id = @tenant_id AND operation_id = @operation_id;

-- name: GetProducts :many
SELECT * FROM products WHERE tenant_id = @tenant_id AND id = ANY(sqlc.slice('ids'));

-- name: ListProducts :many
-- In order of creation, a query for each filter, as of invoices.
SELECT * FROM products
WHERE tenant_id = @tenant_id AND id > @after_id AND id < @before_id
ORDER BY id
LIMIT @row_limit;

-- name: ListProductsBackward :many
SELECT * FROM products
WHERE tenant_id = @tenant_id AND id > @after_id AND id < @before_id
ORDER BY id DESC
LIMIT @row_limit;

-- name: ListActiveProducts :many
SELECT * FROM products
WHERE tenant_id = @tenant_id AND id > @after_id AND id < @before_id AND active
ORDER BY id
LIMIT @row_limit;

-- name: ListActiveProductsBackward :many
SELECT * FROM products
WHERE tenant_id = @tenant_id AND id > @after_id AND id < @before_id AND active
ORDER BY id DESC
LIMIT @row_limit;

-- name: ChangeProduct :one
-- The guard is the version: no row means that somebody else changed the product since it was read.
UPDATE products
SET name = @name, unit_price_minor = @unit_price_minor, active = @active, updated_at = @next_version
WHERE tenant_id = @tenant_id AND id = @id AND updated_at = @expected_updated_at
RETURNING *;

-- name: InsertProductChange :one
INSERT INTO product_changes (
    tenant_id, id, product_id, name, unit_price_minor, active, operation_id, operation_fingerprint, changed_by, changed_at
)
VALUES (
    @tenant_id, @id, @product_id, @name, @unit_price_minor, @active, @operation_id, @operation_fingerprint, @changed_by, @changed_at
)
RETURNING *;

-- name: FindProductChange :one
SELECT * FROM product_changes WHERE tenant_id = @tenant_id AND operation_id = @operation_id;

-- name: TakeStock :one
-- The guard is the count: no row means that there is not enough. Rows are taken in the order of
-- the products' ids, so that two carts cannot hold each other up in a circle.
UPDATE product_stock
SET available = available - @quantity
WHERE tenant_id = @tenant_id AND product_id = @product_id AND available >= @quantity
RETURNING *;

-- name: ReturnStock :one
UPDATE product_stock
SET available = available + @quantity
WHERE tenant_id = @tenant_id AND product_id = @product_id
RETURNING *;

-- name: GetStock :many
SELECT * FROM product_stock WHERE tenant_id = @tenant_id AND product_id = ANY(sqlc.slice('product_ids'));
