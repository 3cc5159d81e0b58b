-- name: InsertPaymentAttempt :one
-- The unique index on pending attempts decides: no second attempt while one is unknown.
INSERT INTO payment_attempts (tenant_id, id, order_id, ordinal, provider, method, status, created_at, updated_at)
VALUES (@tenant_id, @id, @order_id, @ordinal, @provider, @method, 'PENDING', @created_at, @updated_at)
RETURNING *;

-- name: EndPaymentAttempt :one
-- An attempt ends once: no row means that it has ended already.
UPDATE payment_attempts
SET status = @status, provider_payment_id = coalesce(sqlc.narg('provider_payment_id'), provider_payment_id),
    failure = sqlc.narg('failure'), ended_at = @ended_at, updated_at = @next_version
WHERE tenant_id = @tenant_id AND id = @id AND status = 'PENDING'
RETURNING *;

-- name: ListPaymentAttempts :many
SELECT * FROM payment_attempts
WHERE tenant_id = @tenant_id AND order_id = ANY(sqlc.slice('order_ids'))
ORDER BY order_id, ordinal;

-- name: EveryPendingAttempt :many
-- What the reconciler looks at, of all tenants: attempts whose outcome is not known.
SELECT * FROM payment_attempts WHERE status = 'PENDING' AND created_at < @before AND id > @after_id
ORDER BY id
LIMIT @row_limit;

-- name: ClaimPaymentAttempt :one
-- Whoever is about to call the provider for an attempt again says so first, under the order's lock:
-- an attempt is not given up while somebody may be at it. No row means that somebody else is.
UPDATE payment_attempts
SET updated_at = @next_version
WHERE tenant_id = @tenant_id AND id = @id AND status = 'PENDING' AND updated_at = @expected_updated_at
RETURNING *;

-- name: InsertCapture :one
-- The primary key decides: a payment is captured once. No row means that another order has it.
INSERT INTO captures (tenant_id, provider, provider_payment_id, order_id, amount_minor, currency, state, captured_at, updated_at)
VALUES (@tenant_id, @provider, @provider_payment_id, @order_id, @amount_minor, @currency, @state, @captured_at, @updated_at)
ON CONFLICT (tenant_id, provider, provider_payment_id) DO NOTHING
RETURNING *;

-- name: ReturnCapture :one
-- Money that was to go back, or that nobody knew what to do with, has gone back.
UPDATE captures
SET state = 'RETURNED', updated_at = @next_version
WHERE tenant_id = @tenant_id AND provider = @provider AND provider_payment_id = @provider_payment_id
  AND state IN ('REFUND_DUE', 'FLAGGED')
RETURNING *;

-- name: ListCaptures :many
SELECT * FROM captures
WHERE tenant_id = @tenant_id AND order_id = ANY(sqlc.slice('order_ids'))
ORDER BY order_id, captured_at, provider, provider_payment_id;

-- name: EveryUnattendedCapture :many
-- Money that is to be given back, of orders that ask for no person.
SELECT c.* FROM captures c
JOIN orders o ON o.tenant_id = c.tenant_id AND o.id = c.order_id
WHERE c.state IN ('REFUND_DUE', 'FLAGGED') AND c.amount_minor > 0 AND o.attention IS NULL
ORDER BY c.provider_payment_id
LIMIT @row_limit;

-- name: GetRefund :one
SELECT * FROM refunds WHERE tenant_id = @tenant_id AND id = @id;

-- name: InsertRefund :one
INSERT INTO refunds (
    tenant_id, id, order_id, provider, provider_payment_id, provider_refund_id, amount_minor, status, created_at, ended_at, updated_at
)
VALUES (
    @tenant_id, @id, @order_id, @provider, @provider_payment_id, @provider_refund_id, @amount_minor, @status, @created_at, @ended_at, @updated_at
)
RETURNING *;

-- name: EndRefund :one
-- A refund ends once: no row means that it has ended already.
UPDATE refunds
SET status = @status, provider_refund_id = coalesce(sqlc.narg('provider_refund_id'), provider_refund_id),
    failure = sqlc.narg('failure'), ended_at = @ended_at, updated_at = @next_version
WHERE tenant_id = @tenant_id AND id = @id AND status = 'PENDING'
RETURNING *;

-- name: ListRefunds :many
-- Each in the currency of the payment that it gives back, which need not be the order's.
SELECT sqlc.embed(r), c.currency FROM refunds r
JOIN captures c ON c.tenant_id = r.tenant_id AND c.provider = r.provider AND c.provider_payment_id = r.provider_payment_id
WHERE r.tenant_id = @tenant_id AND r.order_id = ANY(sqlc.slice('order_ids'))
ORDER BY r.order_id, r.id;

-- name: FindRefundOfProvider :one
SELECT * FROM refunds
WHERE tenant_id = @tenant_id AND provider = @provider AND provider_refund_id = @provider_refund_id::text;

-- name: EveryPendingRefund :many
SELECT sqlc.embed(r), c.currency FROM refunds r
JOIN captures c ON c.tenant_id = r.tenant_id AND c.provider = r.provider AND c.provider_payment_id = r.provider_payment_id
WHERE r.status = 'PENDING' AND r.created_at < @before AND r.id > @after_id
ORDER BY r.id
LIMIT @row_limit;
