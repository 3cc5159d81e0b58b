-- name: InsertSettlement :one
INSERT INTO settlements (
    tenant_id, id, customer_id, api_key_id, month, ordinal, quantity, unit_price, amount, outcome, round, created_at, settled_at, updated_at
)
SELECT @tenant_id, @id, @customer_id, @api_key_id, @month,
       (SELECT coalesce(max(s.ordinal), 0) + 1 FROM settlements s WHERE s.tenant_id = @tenant_id AND s.api_key_id = @api_key_id AND s.month = @month),
       @quantity, @unit_price, @amount, @outcome, 1, @created_at, @settled_at, @updated_at
RETURNING *;

-- name: GetSettlements :many
SELECT * FROM settlements WHERE tenant_id = @tenant_id AND id = ANY(sqlc.slice('ids'));

-- name: ListSettlementsOfKeys :many
SELECT * FROM settlements WHERE tenant_id = @tenant_id AND api_key_id = ANY(sqlc.slice('api_key_ids'))
ORDER BY api_key_id, month, ordinal;

-- name: ListSettlements :many
-- In order of creation, a query for each filter, as of invoices.
SELECT * FROM settlements
WHERE tenant_id = @tenant_id AND id > @after_id AND id < @before_id
ORDER BY id
LIMIT @row_limit;

-- name: ListSettlementsBackward :many
SELECT * FROM settlements
WHERE tenant_id = @tenant_id AND id > @after_id AND id < @before_id
ORDER BY id DESC
LIMIT @row_limit;

-- name: ListSettlementsOfCustomers :many
-- A page for each of the customers, in one statement.
SELECT settlements.* FROM customers parent
CROSS JOIN LATERAL (
    SELECT * FROM settlements o
    WHERE o.tenant_id = @tenant_id AND o.customer_id = parent.id
      AND o.id > @after_id AND o.id < @before_id
    ORDER BY o.id
    LIMIT @row_limit
) AS settlements
WHERE parent.tenant_id = @tenant_id AND parent.id = ANY(sqlc.slice('customer_ids'))
ORDER BY settlements.customer_id, settlements.id;

-- name: ListSettlementsOfCustomersBackward :many
SELECT settlements.* FROM customers parent
CROSS JOIN LATERAL (
    SELECT * FROM settlements o
    WHERE o.tenant_id = @tenant_id AND o.customer_id = parent.id
      AND o.id > @after_id AND o.id < @before_id
    ORDER BY o.id DESC
    LIMIT @row_limit
) AS settlements
WHERE parent.tenant_id = @tenant_id AND parent.id = ANY(sqlc.slice('customer_ids'))
ORDER BY settlements.customer_id, settlements.id DESC;

-- name: ListSettlementsOfKey :many
SELECT settlements.* FROM api_keys parent
CROSS JOIN LATERAL (
    SELECT * FROM settlements o
    WHERE o.tenant_id = @tenant_id AND o.api_key_id = parent.id
      AND o.id > @after_id AND o.id < @before_id
    ORDER BY o.id
    LIMIT @row_limit
) AS settlements
WHERE parent.tenant_id = @tenant_id AND parent.id = @api_key_id
ORDER BY settlements.id;

-- name: ListSettlementsOfKeyBackward :many
SELECT settlements.* FROM api_keys parent
CROSS JOIN LATERAL (
    SELECT * FROM settlements o
    WHERE o.tenant_id = @tenant_id AND o.api_key_id = parent.id
      AND o.id > @after_id AND o.id < @before_id
    ORDER BY o.id DESC
    LIMIT @row_limit
) AS settlements
WHERE parent.tenant_id = @tenant_id AND parent.id = @api_key_id
ORDER BY settlements.id DESC;

-- name: LockSettlement :one
-- Whoever places a settlement holds it, and takes it before the invoice. A void holds those on its invoice
-- for that order alone: what is placed is moved by nothing else, and the invoice is held.
SELECT * FROM settlements WHERE tenant_id = @tenant_id AND id = @id FOR NO KEY UPDATE;

-- name: PlaceSettlement :one
-- A settlement leaves PENDING once: no row means that somebody else has placed it.
UPDATE settlements
SET outcome = @outcome, invoice_id = sqlc.narg('invoice_id'), exemption_id = sqlc.narg('exemption_id'), settled_at = @settled_at, updated_at = @next_version
WHERE tenant_id = @tenant_id AND id = @id AND outcome = 'PENDING' AND updated_at = @expected_updated_at
RETURNING *;

-- name: ListSettlementsOfInvoice :many
SELECT * FROM settlements WHERE tenant_id = @tenant_id AND invoice_id = sqlc.arg('invoice_id') ORDER BY id;

-- name: UnplaceSettlement :one
-- Voiding an invoice gives its settlements back, for the next round. The version is one guard more than is
-- needed: what is placed is moved by the void of its invoice alone, and that holds both.
UPDATE settlements
SET outcome = 'PENDING', invoice_id = NULL, exemption_id = NULL, settled_at = NULL, round = round + 1, updated_at = @next_version
WHERE tenant_id = @tenant_id AND id = @id AND updated_at = @expected_updated_at
RETURNING *;

-- name: InsertSettlementAttempt :one
-- The receipt's next line, while the settlement is held.
INSERT INTO settlement_attempts (tenant_id, settlement_id, position, round, way, saw, exemption_id, result, attempted_at)
SELECT @tenant_id, @settlement_id, (
    SELECT coalesce(max(a.position), 0) + 1 FROM settlement_attempts a WHERE a.tenant_id = @tenant_id AND a.settlement_id = @settlement_id
), @round, @way, @saw, @exemption_id, @result, @attempted_at
RETURNING *;

-- name: ListSettlementAttempts :many
SELECT * FROM settlement_attempts WHERE tenant_id = @tenant_id AND settlement_id = ANY(sqlc.slice('settlement_ids'))
ORDER BY settlement_id, position;

-- name: ListPendingSettlements :many
SELECT * FROM settlements
WHERE tenant_id = @tenant_id AND customer_id = @customer_id AND month = @month AND outcome = 'PENDING'
ORDER BY id;

-- name: EveryPendingSettlement :many
-- What the job finishes, of all tenants.
SELECT * FROM settlements WHERE outcome = 'PENDING' AND created_at <= @before AND id > @after_id
ORDER BY id
LIMIT @row_limit;

-- name: ListKeysWithUnsettledUsage :many
-- Of a customer, up to a month: what closing it has to settle.
SELECT DISTINCT api_key_id FROM usage_events
WHERE tenant_id = @tenant_id AND customer_id = @customer_id AND month <= @month AND settlement_id IS NULL
ORDER BY api_key_id;
