-- name: InsertAccessToken :one
INSERT INTO access_tokens (
    tenant_id, id, name, role, customer_id, scopes, replaces, secret_hash, hint,
    operation_id, operation_fingerprint, created_by, created_at, expires_at, updated_at
)
VALUES (
    @tenant_id, @id, @name, @role, @customer_id, @scopes, @replaces, @secret_hash, @hint,
    @operation_id, @operation_fingerprint, @created_by, @created_at, @expires_at, @updated_at
)
RETURNING *;

-- name: EveryPresentedToken :many
-- The tokens that requests present at the same moment, of whichever tenants: each is found by its
-- tenant and hash, through the unique index. Only what says who calls: every request asks.
SELECT t.tenant_id, t.id, t.role, t.customer_id, t.scopes, t.secret_hash, t.expires_at, t.revoked_at
FROM ROWS FROM (unnest(@tenant_ids::uuid[]), unnest(@secret_hashes::bytea[])) AS presented (tenant_id, secret_hash)
JOIN access_tokens t ON t.tenant_id = presented.tenant_id AND t.secret_hash = presented.secret_hash;

-- name: EveryClaimedTenant :many
-- The tenants that the claims of requests name at the same moment, by id or by handle, each with
-- whether the customer named beside it is one of that same tenant.
SELECT claimed.place::bigint AS place, t.id,
       EXISTS (SELECT FROM customers c WHERE c.tenant_id = t.id AND c.id = claimed.customer_id) AS has_customer
FROM ROWS FROM (unnest(@tenant_ids::uuid[]), unnest(@handles::text[]), unnest(@customer_ids::uuid[]))
    WITH ORDINALITY AS claimed (tenant_id, handle, customer_id, place)
JOIN ops.tenants t ON t.id = claimed.tenant_id OR t.handle = claimed.handle
ORDER BY claimed.place;

-- name: AllAccessTokens :many
SELECT * FROM access_tokens WHERE tenant_id = @tenant_id ORDER BY id;

-- name: ListAccessTokens :many
SELECT * FROM access_tokens
WHERE tenant_id = @tenant_id AND id > @after_id AND id < @before_id
ORDER BY id
LIMIT @row_limit;

-- name: ListAccessTokensBackward :many
SELECT * FROM access_tokens
WHERE tenant_id = @tenant_id AND id > @after_id AND id < @before_id
ORDER BY id DESC
LIMIT @row_limit;

-- name: GetAccessToken :one
SELECT * FROM access_tokens WHERE tenant_id = @tenant_id AND id = @id;

-- name: GetAccessTokens :many
SELECT * FROM access_tokens WHERE tenant_id = @tenant_id AND id = ANY(sqlc.slice('ids'));

-- name: LockAccessToken :one
-- Those who rotate or revoke one token follow each other, and each reads what the one before it made
-- of it.
SELECT * FROM access_tokens WHERE tenant_id = @tenant_id AND id = @id FOR NO KEY UPDATE;

-- name: FindAccessTokenOfOperation :one
SELECT * FROM access_tokens WHERE tenant_id = @tenant_id AND operation_id = @operation_id;

-- name: GetSuccessor :one
SELECT * FROM access_tokens WHERE tenant_id = @tenant_id AND replaces = @replaces::uuid;

-- name: RetireAccessToken :one
-- A token that was rotated ends with its grace, or at once. One that is revoked stays as it is.
UPDATE access_tokens
SET expires_at = @expires_at, revoked_at = @revoked_at, updated_at = @updated_at
WHERE tenant_id = @tenant_id AND id = @id AND revoked_at IS NULL
RETURNING *;

-- name: RevokeAccessToken :one
-- Revoking again changes nothing: the first moment stays.
UPDATE access_tokens
SET revoked_at = @revoked_at, updated_at = @updated_at
WHERE tenant_id = @tenant_id AND id = @id AND revoked_at IS NULL
RETURNING *;

-- name: InsertAccessTokenHistory :one
INSERT INTO access_token_history (tenant_id, id, token_id, event, operation_id, operation_fingerprint, moved_by, moved_at)
VALUES (@tenant_id, @id, @token_id, @event, @operation_id, @operation_fingerprint, @moved_by, @moved_at)
RETURNING *;

-- name: FindAccessTokenMoveOfOperation :one
SELECT * FROM access_token_history WHERE tenant_id = @tenant_id AND operation_id = @operation_id;

-- name: HistoryOfAccessTokens :many
SELECT * FROM access_token_history WHERE tenant_id = @tenant_id AND token_id = ANY(sqlc.slice('token_ids'))
ORDER BY token_id, moved_at, event;
