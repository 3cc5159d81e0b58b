-- name: InsertCustomer :one
-- A customer is born with its first revision as a buyer, by the same operation.
WITH revision AS (
    INSERT INTO customer_revisions (
        tenant_id, customer_id, revision, id, name, email, address, tax_ids, operation_id, operation_fingerprint, made_by, made_at
    )
    VALUES (@tenant_id, @id, 1, @id, @name, @email, @address, @tax_ids, @operation_id, @operation_fingerprint, @created_by, @created_at)
)
INSERT INTO customers (
    tenant_id, id, name, email, address, tax_ids, revision, currency, time_zone,
    operation_id, operation_fingerprint, created_by, created_at, updated_at
)
VALUES (
    @tenant_id, @id, @name, @email, @address, @tax_ids, 1, @currency, @time_zone,
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
