-- name: InsertSeries :one
-- The series and its counter are born together: a counter made lazily would have two first numbers.
--
-- The guard: the place is the one after the series that the new one was compared with. If another
-- took it meanwhile, nothing is inserted, and the new one is to be compared again.
WITH place AS (
    INSERT INTO series_places (tenant_id, place, series_id)
    VALUES (@tenant_id, @place, @id)
    ON CONFLICT (tenant_id, place) DO NOTHING
    RETURNING series_places.tenant_id, series_places.series_id
), counter AS (
    INSERT INTO series_counters (
        tenant_id, series_id, document, period_start, next_number, max_number, number_prefix, number_suffix, number_width
    )
    SELECT place.tenant_id, place.series_id, @document, @period_start, 1, @max_number, '', '', 1 FROM place
)
INSERT INTO invoice_series (
    tenant_id, id, code, document, format, number_pattern, reset, time_zone, fiscal_year_start,
    max_length, allowed_characters, capacity, preset,
    operation_id, operation_fingerprint, created_by, created_at
)
SELECT place.tenant_id, place.series_id, @code, @document, @format, @number_pattern, @reset, @time_zone, @fiscal_year_start,
       @max_length, @allowed_characters, @capacity, @preset,
       @operation_id, @operation_fingerprint, @created_by, @created_at
FROM place
RETURNING *;

-- name: FindSeriesOfOperation :one
SELECT * FROM invoice_series WHERE tenant_id = @tenant_id AND operation_id = @operation_id;

-- name: GetSeries :many
SELECT * FROM invoice_series WHERE tenant_id = @tenant_id AND id = ANY(sqlc.slice('ids'));

-- name: ListAllSeries :many
-- All that a new series is compared with. They take the places 1 to n.
SELECT * FROM invoice_series WHERE tenant_id = @tenant_id ORDER BY id;

-- name: GetSeriesCounters :many
-- Where series stand; a look, without the lock.
SELECT * FROM series_counters WHERE tenant_id = @tenant_id AND series_id = ANY(sqlc.slice('series_ids'));

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

-- name: SeriesEntriesReach :one
-- Under LockSeriesCounter: whether a number of a period stands in an entry from here on.
SELECT EXISTS (
    SELECT FROM series_entries
    WHERE tenant_id = @tenant_id AND series_id = @series_id AND period_start = @period_start AND last_number >= @from_number
);

-- name: CloseSeriesPeriod :one
-- Under LockSeriesCounter: what a period has numbered, as the counter leaves it. The primary key
-- stands behind the lock: a period that is left twice was entered twice.
INSERT INTO series_periods (tenant_id, series_id, period_start, first_number, last_number, closed_at)
VALUES (@tenant_id, @series_id, @period_start, 1, @last_number, @closed_at)
RETURNING *;

-- name: MoveSeriesCounter :one
-- Under LockSeriesCounter: the counter's period, its next issue date, and what is printed around a
-- number on that day. In a new period the numbers start anew.
UPDATE series_counters
SET period_start = @period_start::date, next_number = CASE WHEN @starts_anew::boolean THEN 1 ELSE next_number END,
    last_issue_date = @issue_date::date, issue_date_ends = @issue_date_ends::timestamptz,
    number_prefix = @number_prefix, number_suffix = @number_suffix, number_width = @number_width
WHERE tenant_id = @tenant_id AND series_id = @series_id
RETURNING *;
