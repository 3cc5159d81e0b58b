-- name: EveryTenantInsert :one
-- A handle is taken once; the loser finds no row here and reads the winner's.
INSERT INTO ops.tenants (id, handle, name, created_at)
VALUES (@id, @handle, @name, @created_at)
ON CONFLICT ON CONSTRAINT tenants_handle_key DO NOTHING
RETURNING *;

-- name: EveryTenantByHandle :one
SELECT * FROM ops.tenants WHERE handle = @handle;
