-- name: InsertCustomer :one
INSERT INTO customers (
    tenant_id, id, name, email, currency, time_zone,
    operation_id, operation_fingerprint, created_by, created_at, updated_at
)
VALUES (
    @tenant_id, @id, @name, @email, @currency, @time_zone,
    @operation_id, @operation_fingerprint, @created_by, @created_at, @updated_at
)
RETURNING *;

-- name: FindCustomerOfOperation :one
SELECT * FROM customers WHERE tenant_id = @tenant_id AND operation_id = @operation_id;

-- name: GetCustomers :many
SELECT * FROM customers WHERE tenant_id = @tenant_id AND id = ANY(sqlc.slice('ids'));

-- name: ListCustomers :many
-- A page forward. The lowest and the highest id stand for "no bound", here and in every page.
SELECT * FROM customers
WHERE tenant_id = @tenant_id AND id > @after_id AND id < @before_id
ORDER BY id
LIMIT @row_limit;

-- name: ListCustomersBackward :many
-- The same page from its end.
SELECT * FROM customers
WHERE tenant_id = @tenant_id AND id > @after_id AND id < @before_id
ORDER BY id DESC
LIMIT @row_limit;
