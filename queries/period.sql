-- name: InsertPeriods :many
-- Pinned once, before anything is used in the month; sorted, so that two batches cannot deadlock.
INSERT INTO billing_periods (tenant_id, customer_id, month, time_zone, starts_at, ends_at)
SELECT @tenant_id, p.customer_id, p.month, p.time_zone, p.starts_at, p.ends_at
FROM ROWS FROM (
    unnest(@customer_ids::uuid[]), unnest(@months::date[]), unnest(@time_zones::text[]), unnest(@starts::timestamptz[]), unnest(@ends::timestamptz[])
) AS p (customer_id, month, time_zone, starts_at, ends_at)
ORDER BY p.customer_id, p.month
ON CONFLICT ON CONSTRAINT billing_periods_pkey DO NOTHING
RETURNING *;

-- name: SharePeriod :one
-- Folding holds the month open: it cannot close before the fold has committed, nor the fold begin
-- before a closing has.
SELECT * FROM billing_periods WHERE tenant_id = @tenant_id AND customer_id = @customer_id AND month = @month FOR SHARE;

-- name: LockPeriod :one
-- Closing and recovery hold the month alone: two recoveries that shared it would race for the
-- insert again.
SELECT * FROM billing_periods WHERE tenant_id = @tenant_id AND customer_id = @customer_id AND month = @month FOR NO KEY UPDATE;

-- name: GetPeriod :one
SELECT * FROM billing_periods WHERE tenant_id = @tenant_id AND customer_id = @customer_id AND month = @month;

-- name: ClosePeriod :one
UPDATE billing_periods SET closed_at = @closed_at
WHERE tenant_id = @tenant_id AND customer_id = @customer_id AND month = @month AND closed_at IS NULL
RETURNING *;

-- name: EveryPeriodToClose :many
-- Earlier months too: one that was first used after everybody's was closed must not accrue for ever.
SELECT * FROM billing_periods
WHERE month <= @month AND closed_at IS NULL
  AND (tenant_id, customer_id, month) > (@after_tenant_id::uuid, @after_customer_id::uuid, @after_month::date)
ORDER BY tenant_id, customer_id, month
LIMIT @row_limit;
