-- name: EverySimulatedCharge :one
-- The simulated provider's side of a charge: one row per idempotency key, whatever is asked how
-- often. The first call leaves the first status, a later one completes what was not done.
INSERT INTO ops.simulated_payments (idempotency_key, payment_id, reference, method, amount_minor, currency, status, calls, created_at)
VALUES (@idempotency_key, @payment_id, @reference, @method, @amount_minor, @currency, @first_status, 1, @created_at)
ON CONFLICT ON CONSTRAINT simulated_payments_pkey DO UPDATE
SET calls = ops.simulated_payments.calls + 1,
    status = CASE WHEN ops.simulated_payments.status = 'NONE' THEN 'CHARGED' ELSE ops.simulated_payments.status END
RETURNING *;

-- name: EverySimulatedPayment :one
SELECT * FROM ops.simulated_payments WHERE idempotency_key = @idempotency_key;

-- name: EverySimulatedPaymentByID :one
-- Locked: the sum of its refunds is read in a later statement.
SELECT * FROM ops.simulated_payments WHERE payment_id = @payment_id FOR NO KEY UPDATE;

-- name: EverySimulatedRefund :one
INSERT INTO ops.simulated_refunds (idempotency_key, refund_id, payment_id, amount_minor, created_at)
VALUES (@idempotency_key, @refund_id, @payment_id, @amount_minor, @created_at)
ON CONFLICT ON CONSTRAINT simulated_refunds_pkey DO UPDATE SET amount_minor = ops.simulated_refunds.amount_minor
RETURNING *;

-- name: EverySimulatedRefundOfPayment :one
SELECT coalesce(sum(amount_minor), 0)::bigint AS refunded_minor FROM ops.simulated_refunds WHERE payment_id = @payment_id;
