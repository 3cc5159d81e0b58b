-- name: InsertSeries :one
-- The series and its counter are born together: a counter made lazily would have two first numbers.
WITH counter AS (
    INSERT INTO series_counters (
        tenant_id, series_id, document, period_start, next_number, number_prefix, number_suffix, number_width
    )
    VALUES (@tenant_id, @id, @document, @period_start, 1, '', '', 1)
)
INSERT INTO invoice_series (
    tenant_id, id, code, document, format, number_pattern, time_zone, fiscal_year_start,
    operation_id, operation_fingerprint, created_by, created_at
)
VALUES (
    @tenant_id, @id, @code, @document, @format, @number_pattern, @time_zone, @fiscal_year_start,
    @operation_id, @operation_fingerprint, @created_by, @created_at
)
RETURNING *;

-- name: FindSeriesOfOperation :one
SELECT * FROM invoice_series WHERE tenant_id = @tenant_id AND operation_id = @operation_id;

-- name: GetSeries :many
SELECT * FROM invoice_series WHERE tenant_id = @tenant_id AND id = ANY(sqlc.slice('ids'));

-- name: ListSeries :many
SELECT * FROM invoice_series
WHERE tenant_id = @tenant_id AND id > @after_id AND id < @before_id
ORDER BY id
LIMIT @row_limit;

-- name: ListSeriesBackward :many
SELECT * FROM invoice_series
WHERE tenant_id = @tenant_id AND id > @after_id AND id < @before_id
ORDER BY id DESC
LIMIT @row_limit;

-- name: LockSeriesCounter :one
-- The lock that makes numbers: whoever holds it decides the next one. The series itself is read
-- in a later statement, without a lock: other rows refer to it.
SELECT * FROM series_counters
WHERE tenant_id = @tenant_id AND series_id = @series_id
FOR UPDATE;

-- name: MoveSeriesCounter :one
-- Under LockSeriesCounter: the counter's next issue date, and what is printed around a number on
-- that day.
UPDATE series_counters
SET last_issue_date = @issue_date::date, issue_date_ends = @issue_date_ends::timestamptz,
    number_prefix = @number_prefix, number_suffix = @number_suffix, number_width = @number_width
WHERE tenant_id = @tenant_id AND series_id = @series_id
RETURNING *;
