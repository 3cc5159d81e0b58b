-- name: InsertExemption :one
-- The unique index on exemptions that have not ended decides: a customer has one at a time.
INSERT INTO billing_exemptions (tenant_id, id, customer_id, reason, operation_id, operation_fingerprint, granted_by, granted_at)
VALUES (@tenant_id, @id, @customer_id, @reason, @operation_id, @operation_fingerprint, @granted_by, @granted_at)
RETURNING *;

-- name: EndExemption :one
-- Guarded by what it ends: no row means that there is none, or that somebody else ended it.
UPDATE billing_exemptions
SET ended_by = @ended_by, ended_at = @ended_at, end_operation_id = @end_operation_id, end_fingerprint = @end_fingerprint
WHERE tenant_id = @tenant_id AND customer_id = @customer_id AND ended_at IS NULL
RETURNING *;

-- name: FindExemptionOfOperation :one
SELECT * FROM billing_exemptions WHERE tenant_id = @tenant_id AND operation_id = @operation_id;

-- name: FindExemptionOfEnd :one
SELECT * FROM billing_exemptions WHERE tenant_id = @tenant_id AND end_operation_id = @end_operation_id;

-- name: ListActiveExemptions :many
-- State that no invoice's version can see: read on every attempt, and again after every write.
SELECT * FROM billing_exemptions WHERE tenant_id = @tenant_id AND customer_id = ANY(sqlc.slice('customer_ids')) AND ended_at IS NULL;

-- name: ListExemptions :many
SELECT * FROM billing_exemptions WHERE tenant_id = @tenant_id AND id = ANY(sqlc.slice('ids'));
