-- name: ChangeCustomer :one
-- The guard is the version: no row means that somebody else changed the customer since it was read.
UPDATE customers
SET name = @name, email = @email, address = @address, tax_ids = @tax_ids, revision = @revision, updated_at = @next_version
WHERE tenant_id = @tenant_id AND id = @id AND updated_at = @expected_updated_at
RETURNING *;

-- name: InsertCustomerRevision :one
-- What the buyer was before stays: invoices refer to it.
INSERT INTO customer_revisions (
    tenant_id, customer_id, revision, id, name, email, address, tax_ids, operation_id, operation_fingerprint, made_by, made_at
)
VALUES (
    @tenant_id, @customer_id, @revision, @id, @name, @email, @address, @tax_ids, @operation_id, @operation_fingerprint, @made_by, @made_at
)
RETURNING *;

-- name: FindCustomerRevision :one
SELECT * FROM customer_revisions WHERE tenant_id = @tenant_id AND operation_id = @operation_id;

-- name: InsertSeller :one
INSERT INTO sellers (tenant_id, name, tax_ids, revision, updated_at)
VALUES (@tenant_id, @name, '[]', 1, @updated_at)
RETURNING *;

-- name: GetSeller :one
SELECT * FROM sellers WHERE tenant_id = @tenant_id;

-- name: ChangeSeller :one
-- Guarded by the version, as ChangeCustomer is.
UPDATE sellers
SET name = @name, email = @email, address = @address, tax_ids = @tax_ids, revision = @revision, updated_at = @next_version
WHERE tenant_id = @tenant_id AND updated_at = @expected_updated_at
RETURNING *;

-- name: InsertSellerRevision :one
INSERT INTO seller_revisions (
    tenant_id, revision, id, name, email, address, tax_ids, operation_id, operation_fingerprint, made_by, made_at
)
VALUES (
    @tenant_id, @revision, @id, @name, @email, @address, @tax_ids, @operation_id, @operation_fingerprint, @made_by, @made_at
)
RETURNING *;

-- name: FindSellerRevision :one
SELECT * FROM seller_revisions WHERE tenant_id = @tenant_id AND operation_id = @operation_id;

-- name: ListSellersOfInvoices :many
-- The revision that an invoice is frozen with, else the one that is true now.
SELECT i.id AS invoice_id, r.name, r.email, r.address, r.tax_ids, r.revision
FROM invoices i
JOIN sellers s ON s.tenant_id = i.tenant_id
JOIN seller_revisions r ON r.tenant_id = i.tenant_id AND r.revision = coalesce(i.seller_revision, s.revision)
WHERE i.tenant_id = @tenant_id AND i.id = ANY(sqlc.slice('invoice_ids'));

-- name: ListBuyersOfInvoices :many
SELECT i.id AS invoice_id, r.name, r.email, r.address, r.tax_ids, r.revision
FROM invoices i
JOIN customers c ON c.tenant_id = i.tenant_id AND c.id = i.customer_id
JOIN customer_revisions r ON r.tenant_id = i.tenant_id AND r.customer_id = i.customer_id AND r.revision = coalesce(i.buyer_revision, c.revision)
WHERE i.tenant_id = @tenant_id AND i.id = ANY(sqlc.slice('invoice_ids'));
