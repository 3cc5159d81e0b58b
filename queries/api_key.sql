-- name: InsertAPIKey :one
INSERT INTO api_keys (
    tenant_id, id, customer_id, name, unit_price, secret_hash, hint, status,
    operation_id, operation_fingerprint, created_by, created_at, updated_at
)
VALUES (
    @tenant_id, @id, @customer_id, @name, @unit_price, @secret_hash, @hint, 'ACTIVE',
    @operation_id, @operation_fingerprint, @created_by, @created_at, @updated_at
)
RETURNING *;

-- name: FindAPIKeyOfOperation :one
SELECT * FROM api_keys WHERE tenant_id = @tenant_id AND operation_id = @operation_id;

-- name: GetAPIKeys :many
SELECT * FROM api_keys WHERE tenant_id = @tenant_id AND id = ANY(sqlc.slice('ids'));

-- name: ListAPIKeys :many
-- In order of creation, a query for each filter, as of invoices.
SELECT * FROM api_keys
WHERE tenant_id = @tenant_id AND id > @after_id AND id < @before_id
ORDER BY id
LIMIT @row_limit;

-- name: ListAPIKeysBackward :many
SELECT * FROM api_keys
WHERE tenant_id = @tenant_id AND id > @after_id AND id < @before_id
ORDER BY id DESC
LIMIT @row_limit;

-- name: ListAPIKeysOfCustomers :many
-- A page for each of the customers, in one statement.
SELECT api_keys.* FROM customers parent
CROSS JOIN LATERAL (
    SELECT * FROM api_keys o
    WHERE o.tenant_id = @tenant_id AND o.customer_id = parent.id
      AND o.id > @after_id AND o.id < @before_id
    ORDER BY o.id
    LIMIT @row_limit
) AS api_keys
WHERE parent.tenant_id = @tenant_id AND parent.id = ANY(sqlc.slice('customer_ids'))
ORDER BY api_keys.customer_id, api_keys.id;

-- name: ListAPIKeysOfCustomersBackward :many
SELECT api_keys.* FROM customers parent
CROSS JOIN LATERAL (
    SELECT * FROM api_keys o
    WHERE o.tenant_id = @tenant_id AND o.customer_id = parent.id
      AND o.id > @after_id AND o.id < @before_id
    ORDER BY o.id DESC
    LIMIT @row_limit
) AS api_keys
WHERE parent.tenant_id = @tenant_id AND parent.id = ANY(sqlc.slice('customer_ids'))
ORDER BY api_keys.customer_id, api_keys.id DESC;

-- name: ShareActiveKeys :many
-- Ingestion holds its keys active until it has committed. It keeps off those whose revocation is
-- announced, so that a stream of it cannot hold the revocation up; what is active is checked again
-- on a key that was waited for. In the order of the ids.
SELECT k.* FROM api_keys k
WHERE k.tenant_id = @tenant_id AND k.id = ANY(sqlc.slice('ids')) AND k.status = 'ACTIVE'
  AND NOT EXISTS (SELECT FROM api_key_revocations r WHERE r.tenant_id = k.tenant_id AND r.api_key_id = k.id)
ORDER BY k.id
FOR SHARE OF k;

-- name: LockAPIKey :one
-- Revocation waits for the ingestion in flight and keeps off what comes after; what the key has
-- used is summed in a later statement: in this one the snapshot is older than the wait.
SELECT * FROM api_keys WHERE tenant_id = @tenant_id AND id = @id FOR UPDATE;

-- name: HoldAPIKey :one
-- Closing a month keeps ingestion off the key while its usage is summed and marked, as revocation
-- does; NO KEY, since nothing of it changes.
SELECT * FROM api_keys WHERE tenant_id = @tenant_id AND id = @id FOR NO KEY UPDATE;

-- name: RevokeAPIKey :one
UPDATE api_keys SET status = 'REVOKED', revoked_at = @revoked_at, updated_at = @next_version
WHERE tenant_id = @tenant_id AND id = @id AND status = 'ACTIVE'
RETURNING *;

-- name: AnnounceRevocation :one
-- The primary key decides: a key is revoked once.
INSERT INTO api_key_revocations (tenant_id, api_key_id, reason, operation_id, operation_fingerprint, announced_by, announced_at)
VALUES (@tenant_id, @api_key_id, @reason, @operation_id, @operation_fingerprint, @announced_by, @announced_at)
RETURNING *;

-- name: GetRevocation :one
SELECT * FROM api_key_revocations WHERE tenant_id = @tenant_id AND api_key_id = @api_key_id;

-- name: FindRevocationOfOperation :one
SELECT * FROM api_key_revocations WHERE tenant_id = @tenant_id AND operation_id = @operation_id;

-- name: FinishRevocation :one
UPDATE api_key_revocations SET settled_at = @settled_at
WHERE tenant_id = @tenant_id AND api_key_id = @api_key_id AND settled_at IS NULL
RETURNING *;

-- name: EveryUnfinishedRevocation :many
-- Announcements that a crash has left.
SELECT * FROM api_key_revocations WHERE settled_at IS NULL AND announced_at <= @before AND (tenant_id, api_key_id) > (@after_tenant_id::uuid, @after_key_id::uuid)
ORDER BY tenant_id, api_key_id
LIMIT @row_limit;
