-- name: InsertUsage :many
-- Each event counts once for ever, by the client's id; those that exist are read in a new
-- statement. Sorted by their ids, so that two batches cannot deadlock.
INSERT INTO usage_events (tenant_id, event_id, api_key_id, customer_id, month, quantity, occurred_at, recorded_by, recorded_at)
SELECT @tenant_id, e.event_id, e.api_key_id, e.customer_id, e.month, e.quantity, e.occurred_at, @recorded_by::text, @recorded_at::timestamptz
FROM ROWS FROM (
    unnest(@event_ids::text[]), unnest(@api_key_ids::uuid[]), unnest(@customer_ids::uuid[]), unnest(@months::date[]),
    unnest(@quantities::bigint[]), unnest(@occurred_ats::timestamptz[])
) AS e (event_id, api_key_id, customer_id, month, quantity, occurred_at)
ORDER BY e.event_id
ON CONFLICT ON CONSTRAINT usage_events_pkey DO NOTHING
RETURNING *;

-- name: GetUsage :many
SELECT * FROM usage_events WHERE tenant_id = @tenant_id AND event_id = ANY(@event_ids::text[]);

-- name: SumUnsettledUsage :many
-- After the key is locked: what it has used and nothing has settled, by month.
SELECT month, sum(quantity)::numeric AS quantity, count(*) AS events
FROM usage_events
WHERE tenant_id = @tenant_id AND api_key_id = @api_key_id AND settlement_id IS NULL
GROUP BY month ORDER BY month;

-- name: SettleUsage :execrows
-- Marks what a settlement is the sum of. The count tells that it was the same.
UPDATE usage_events SET settlement_id = @settlement_id
WHERE tenant_id = @tenant_id AND api_key_id = @api_key_id AND month = @month AND settlement_id IS NULL;

-- name: InsertUsageBatch :one
INSERT INTO usage_batches (tenant_id, id, operation_id, operation_fingerprint, accepted, duplicates, refused, recorded_by, recorded_at)
VALUES (@tenant_id, @id, @operation_id, @operation_fingerprint, @accepted, @duplicates, @refused, @recorded_by, @recorded_at)
RETURNING *;

-- name: FindUsageBatch :one
SELECT * FROM usage_batches WHERE tenant_id = @tenant_id AND operation_id = @operation_id;
