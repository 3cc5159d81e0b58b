-- name: EveryPaymentEventInsert :one
-- The inbox takes each event once, by the provider's id of the event. The loser finds no row here
-- and reads the winner's in a new statement.
INSERT INTO ops.payment_events (
    provider, event_id, kind, reference, tenant_id, payment_id, refund_id, amount_minor, currency, received_at, conflicts
)
VALUES (
    @provider, @event_id, @kind, @reference, @tenant_id, @payment_id, @refund_id, @amount_minor, @currency, @received_at, 0
)
ON CONFLICT ON CONSTRAINT payment_events_pkey DO NOTHING
RETURNING *;

-- name: EveryPaymentEvent :one
SELECT * FROM ops.payment_events WHERE provider = @provider AND event_id = @event_id;

-- name: EveryPaymentEventConflict :one
-- A known event with other content is kept beside the first, for a person, and does nothing.
UPDATE ops.payment_events
SET conflicts = conflicts + 1, conflict = @conflict
WHERE provider = @provider AND event_id = @event_id
RETURNING *;

-- name: EveryOrderReference :one
-- Whose an order is that a webhook names. Outside of the transaction, over an index on the id.
SELECT orders.tenant_id FROM orders WHERE orders.id = @id;

-- name: EveryPaymentEventOfReference :many
-- After the order is locked: what the inbox holds for it and nobody has applied, in the order of
-- arrival.
SELECT * FROM ops.payment_events
WHERE reference = @reference AND provider = @provider AND processed_at IS NULL
ORDER BY received_at, event_id;

-- name: EveryPaymentEventDone :one
-- An event is applied once: no row means that it has been.
UPDATE ops.payment_events
SET processed_at = @processed_at, result = @result, tenant_id = @tenant_id
WHERE provider = @provider AND event_id = @event_id AND processed_at IS NULL
RETURNING *;

-- name: EveryPaymentEventKept :one
-- An event that waits belongs to somebody once its order is there.
UPDATE ops.payment_events
SET tenant_id = @tenant_id
WHERE provider = @provider AND event_id = @event_id AND payment_events.tenant_id IS NULL
RETURNING *;

-- name: EveryUnprocessedEvent :many
-- What the sweep looks at, without a lock: it locks the order first, as a delivery does.
SELECT * FROM ops.payment_events
WHERE processed_at IS NULL AND (received_at, provider, event_id) > (@after_received_at::timestamptz, @after_provider::text, @after_event_id::text)
ORDER BY received_at, provider, event_id
LIMIT @row_limit;

-- name: EveryPaymentEventOfTenant :many
-- A tenant's events, newest last.
SELECT * FROM ops.payment_events
WHERE tenant_id = @tenant_id::uuid
  AND (received_at, provider, event_id) > (@after_received_at::timestamptz, @after_provider::text, @after_event_id::text)
  AND (received_at, provider, event_id) < (@before_received_at::timestamptz, @before_provider::text, @before_event_id::text)
ORDER BY received_at, provider, event_id
LIMIT @row_limit;

-- name: EveryPaymentEventOfTenantBackward :many
SELECT * FROM ops.payment_events
WHERE tenant_id = @tenant_id::uuid
  AND (received_at, provider, event_id) > (@after_received_at::timestamptz, @after_provider::text, @after_event_id::text)
  AND (received_at, provider, event_id) < (@before_received_at::timestamptz, @before_provider::text, @before_event_id::text)
ORDER BY received_at DESC, provider DESC, event_id DESC
LIMIT @row_limit;
