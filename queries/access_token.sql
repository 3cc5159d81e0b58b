-- name: InsertAccessToken :one
INSERT INTO access_tokens (tenant_id, id, name, role, customer_id, secret_hash, hint, created_at, expires_at, updated_at)
VALUES (@tenant_id, @id, @name, @role, @customer_id, @secret_hash, @hint, @created_at, @expires_at, @updated_at)
RETURNING *;

-- name: EveryPresentedToken :many
-- The tokens that requests present at the same moment, of whichever tenants: each is found by its
-- tenant and hash, through the unique index.
SELECT t.*
FROM ROWS FROM (unnest(@tenant_ids::uuid[]), unnest(@secret_hashes::bytea[])) AS presented (tenant_id, secret_hash)
JOIN access_tokens t ON t.tenant_id = presented.tenant_id AND t.secret_hash = presented.secret_hash;

-- name: ListAccessTokens :many
SELECT * FROM access_tokens WHERE tenant_id = @tenant_id ORDER BY id;

-- name: RevokeAccessToken :one
-- Revoking again changes nothing: the first moment stays.
UPDATE access_tokens
SET revoked_at = @revoked_at, updated_at = @updated_at
WHERE tenant_id = @tenant_id AND id = @id AND revoked_at IS NULL
RETURNING *;

-- name: GetAccessToken :one
SELECT * FROM access_tokens WHERE tenant_id = @tenant_id AND id = @id;
