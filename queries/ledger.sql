-- name: TallyLedger :one
-- A stretch of a period's ledger, in one pass in the order of the numbers: what has numbers after
-- @after_number and up to @up_to_number, at most @row_limit rows and their equals, beside the entries
-- that the arrays hold. @covered is the number up to which what comes before the stretch reaches. A row that begins
-- past the next number leaves a gap; one that begins at a number before is a twin. @latest is the last day of
-- the entries before the stretch: an entry of an earlier day is out of order. The invoices are in order, as the
-- counter has it, and their day is not in the index.
WITH ledger AS (
    SELECT u.first_number, u.last_number, u.state, u.issue_date
    -- Each part is in the order of its index, which the planner does not see unless it is asked for: the
    -- parts are merged as they come, and nothing is sorted.
    FROM (
        (SELECT i.sequence AS first_number, i.sequence AS last_number, 'ISSUED'::text AS state, NULL::date AS issue_date
         FROM invoices i
         WHERE i.tenant_id = @tenant_id AND i.series_id = @series_id AND i.period_start = @period_start
           AND i.sequence > @after_number AND i.sequence <= @up_to_number
         ORDER BY i.sequence)
        UNION ALL
        (SELECT e.first_number, e.last_number, e.state, e.issue_date
         FROM series_entries e
         WHERE e.tenant_id = @tenant_id AND e.series_id = @series_id AND e.period_start = @period_start
           AND e.first_number > @after_number AND e.first_number <= @up_to_number
         ORDER BY e.first_number)
        UNION ALL
        (SELECT a.first_number, a.last_number, a.state, nullif(a.issue_date, '')::date
         FROM ROWS FROM (unnest(@first_numbers::bigint[]), unnest(@last_numbers::bigint[]), unnest(@states::text[]), unnest(@issue_dates::text[]))
             AS a (first_number, last_number, state, issue_date)
         WHERE a.first_number > @after_number AND a.first_number <= @up_to_number
         ORDER BY a.first_number)
    ) u
    ORDER BY u.first_number
    FETCH FIRST (sqlc.arg('row_limit')::integer) ROWS WITH TIES
), stepped AS (
    SELECT l.first_number, l.last_number, l.state, l.issue_date,
           greatest(@covered::bigint, max(l.last_number) OVER before) AS covered, greatest(@latest::date, max(l.issue_date) OVER before) AS latest
    FROM ledger l
    WINDOW before AS (ORDER BY l.first_number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
), told AS (
    SELECT s.first_number, s.last_number, s.state, s.covered, s.issue_date, s.latest,
           count(*) FILTER (WHERE s.first_number > s.covered + 1) OVER so_far AS gap,
           count(*) FILTER (WHERE s.first_number <= s.covered) OVER so_far AS twin
    FROM stepped s
    WINDOW so_far AS (ORDER BY s.first_number ROWS UNBOUNDED PRECEDING)
)
SELECT count(*) AS line_count, coalesce(max(t.first_number), @after_number)::bigint AS after_number,
       greatest(@covered, max(t.last_number))::bigint AS covered,
       count(*) FILTER (WHERE t.state = 'ISSUED') AS issued,
       coalesce(sum(t.last_number - t.first_number + 1) FILTER (WHERE t.state = 'IMPORTED'), 0)::bigint AS imported,
       coalesce(sum(t.last_number - t.first_number + 1) FILTER (WHERE t.state = 'VOIDED_ELSEWHERE'), 0)::bigint AS voided_elsewhere,
       coalesce(sum(t.last_number - t.first_number + 1) FILTER (WHERE t.state = 'SKIPPED'), 0)::bigint AS skipped,
       count(*) FILTER (WHERE t.first_number > t.covered + 1) AS gap_count,
       coalesce(sum(t.first_number - t.covered - 1) FILTER (WHERE t.first_number > t.covered + 1), 0)::bigint AS unexplained,
       coalesce(array_agg(t.covered + 1) FILTER (WHERE t.first_number > t.covered + 1 AND t.gap <= @detail_limit::integer), '{}')::bigint[] AS gap_firsts,
       coalesce(array_agg(t.first_number - 1) FILTER (WHERE t.first_number > t.covered + 1 AND t.gap <= @detail_limit::integer), '{}')::bigint[] AS gap_lasts,
       count(*) FILTER (WHERE t.first_number <= t.covered) AS twin_count,
       coalesce(array_agg(t.first_number) FILTER (WHERE t.first_number <= t.covered AND t.twin <= @detail_limit::integer), '{}')::bigint[] AS twins,
       coalesce(sum(t.last_number - t.first_number + 1) FILTER (WHERE t.issue_date < t.latest), 0)::bigint AS out_of_order,
       coalesce(min(t.first_number) FILTER (WHERE t.issue_date < t.latest), 0)::bigint AS first_out_of_order,
       greatest(@latest, max(t.issue_date))::date AS latest
FROM told t;

-- name: ListContradictedRuns :many
-- Runs of numbers that are entered, with the earliest and the latest of their days, beside the invoices right below and right
-- above them: those of which a day is before the one's, or after the other's. No invoice lies within a run, and the
-- invoices' own days rise with their numbers, so none further away contradicts what these two do not.
SELECT r.run::bigint AS run, coalesce(below.sequence, 0)::bigint AS below_number, coalesce(below.issue_date, '0001-01-01')::date AS below_date,
       coalesce(above.sequence, 0)::bigint AS above_number, coalesce(above.issue_date, '9999-12-31')::date AS above_date
FROM ROWS FROM (unnest(@first_numbers::bigint[]), unnest(@last_numbers::bigint[]), unnest(@earliest_days::text[]), unnest(@latest_days::text[]))
    WITH ORDINALITY AS r (first_number, last_number, earliest_day, latest_day, run)
LEFT JOIN LATERAL (
    SELECT i.sequence, i.issue_date FROM invoices i
    WHERE i.tenant_id = @tenant_id AND i.series_id = @series_id AND i.period_start = @period_start AND i.sequence < r.first_number
    ORDER BY i.sequence DESC LIMIT 1
) below ON true
LEFT JOIN LATERAL (
    SELECT i.sequence, i.issue_date FROM invoices i
    WHERE i.tenant_id = @tenant_id AND i.series_id = @series_id AND i.period_start = @period_start AND i.sequence > r.last_number
    ORDER BY i.sequence LIMIT 1
) above ON true
WHERE below.issue_date > r.earliest_day::date OR above.issue_date < r.latest_day::date
ORDER BY r.run;

-- name: LastLedgerNumber :one
-- How far a period's ledger reaches, and the day of its last invoice.
SELECT greatest(0,
           (SELECT max(i.sequence) FROM invoices i WHERE i.tenant_id = @tenant_id AND i.series_id = @series_id AND i.period_start = @period_start),
           (SELECT max(e.last_number) FROM series_entries e WHERE e.tenant_id = @tenant_id AND e.series_id = @series_id AND e.period_start = @period_start)
       )::bigint AS last_number,
       coalesce((SELECT i.issue_date FROM invoices i
           WHERE i.tenant_id = @tenant_id AND i.series_id = @series_id AND i.period_start = @period_start AND i.sequence IS NOT NULL
           ORDER BY i.sequence DESC LIMIT 1), '0001-01-01')::date AS issue_date;

-- name: EndOfEntryBefore :one
-- Where the entry ends that begins before a number; it may reach past it.
SELECT coalesce((SELECT e.last_number FROM series_entries e
    WHERE e.tenant_id = @tenant_id AND e.series_id = @series_id AND e.period_start = @period_start AND e.first_number < @number
    ORDER BY e.first_number DESC LIMIT 1), 0)::bigint AS last_number;

-- name: CountVoidNumbers :one
SELECT count(*) FROM invoices
WHERE tenant_id = @tenant_id AND series_id = @series_id AND period_start = @period_start AND voided_at IS NOT NULL;

-- name: ListVoidNumbers :many
SELECT u.first_number::bigint AS first_number, u.last_number::bigint AS last_number, u.state::text AS state, u.reason::text AS reason,
       u.issue_date::date AS issue_date, u.reference::text AS reference, u.invoice_id::uuid AS invoice_id, u.number::text AS number
FROM (
    (SELECT i.sequence AS first_number, i.sequence AS last_number, 'VOID'::text AS state, coalesce(i.void_reason, '') AS reason,
            i.issue_date, ''::text AS reference, i.id AS invoice_id, coalesce(i.number, '') AS number
     FROM invoices i
     WHERE i.tenant_id = @tenant_id AND i.series_id = @series_id AND i.period_start = @period_start AND i.voided_at IS NOT NULL
     ORDER BY i.sequence LIMIT @row_limit::integer)
    UNION ALL
    (SELECT e.first_number, e.last_number, e.state, e.reason, coalesce(e.issue_date, '0001-01-01'), coalesce(e.reference, ''),
            '00000000-0000-0000-0000-000000000000', ''
     FROM series_entries e
     WHERE e.tenant_id = @tenant_id AND e.series_id = @series_id AND e.period_start = @period_start AND e.state = 'VOIDED_ELSEWHERE'
     ORDER BY e.first_number LIMIT @row_limit::integer)
) u
ORDER BY u.first_number
LIMIT @row_limit::integer;

-- name: ListLedger :many
-- A page of a period's ledger, in the order of the numbers. What an entry lacks is the zero value.
SELECT u.first_number::bigint AS first_number, u.last_number::bigint AS last_number, u.state::text AS state, u.reason::text AS reason,
       u.issue_date::date AS issue_date, u.reference::text AS reference, u.invoice_id::uuid AS invoice_id, u.number::text AS number
FROM (
    (SELECT i.sequence AS first_number, i.sequence AS last_number,
            CASE WHEN i.voided_at IS NULL THEN 'ISSUED' ELSE 'VOID' END AS state, coalesce(i.void_reason, '') AS reason,
            i.issue_date, ''::text AS reference, i.id AS invoice_id, coalesce(i.number, '') AS number
     FROM invoices i
     WHERE i.tenant_id = @tenant_id AND i.series_id = @series_id AND i.period_start = @period_start
       AND i.sequence > @after_number::bigint AND i.sequence < @before_number::bigint
     ORDER BY i.sequence LIMIT @row_limit::integer)
    UNION ALL
    (SELECT e.first_number, e.last_number, e.state, e.reason, coalesce(e.issue_date, '0001-01-01'), coalesce(e.reference, ''),
            '00000000-0000-0000-0000-000000000000', ''
     FROM series_entries e
     WHERE e.tenant_id = @tenant_id AND e.series_id = @series_id AND e.period_start = @period_start
       AND e.first_number > @after_number::bigint AND e.first_number < @before_number::bigint
     ORDER BY e.first_number LIMIT @row_limit::integer)
) u
ORDER BY u.first_number
LIMIT @row_limit::integer;

-- name: ListLedgerBackward :many
SELECT u.first_number::bigint AS first_number, u.last_number::bigint AS last_number, u.state::text AS state, u.reason::text AS reason,
       u.issue_date::date AS issue_date, u.reference::text AS reference, u.invoice_id::uuid AS invoice_id, u.number::text AS number
FROM (
    (SELECT i.sequence AS first_number, i.sequence AS last_number,
            CASE WHEN i.voided_at IS NULL THEN 'ISSUED' ELSE 'VOID' END AS state, coalesce(i.void_reason, '') AS reason,
            i.issue_date, ''::text AS reference, i.id AS invoice_id, coalesce(i.number, '') AS number
     FROM invoices i
     WHERE i.tenant_id = @tenant_id AND i.series_id = @series_id AND i.period_start = @period_start
       AND i.sequence > @after_number::bigint AND i.sequence < @before_number::bigint
     ORDER BY i.sequence DESC LIMIT @row_limit::integer)
    UNION ALL
    (SELECT e.first_number, e.last_number, e.state, e.reason, coalesce(e.issue_date, '0001-01-01'), coalesce(e.reference, ''),
            '00000000-0000-0000-0000-000000000000', ''
     FROM series_entries e
     WHERE e.tenant_id = @tenant_id AND e.series_id = @series_id AND e.period_start = @period_start
       AND e.first_number > @after_number::bigint AND e.first_number < @before_number::bigint
     ORDER BY e.first_number DESC LIMIT @row_limit::integer)
) u
ORDER BY u.first_number DESC
LIMIT @row_limit::integer;

-- name: ListSeriesPeriods :many
-- The periods of a series that it has left, in order.
SELECT * FROM series_periods
WHERE tenant_id = @tenant_id AND series_id = @series_id
ORDER BY period_start;

-- name: ListPeriodsOfSeries :many
-- A page for each of the series, of the periods that it has left.
SELECT series_periods.* FROM invoice_series parent
CROSS JOIN LATERAL (
    SELECT * FROM series_periods r
    WHERE r.tenant_id = @tenant_id AND r.series_id = parent.id
      AND r.period_start > @after_period::date AND r.period_start < @before_period::date
    ORDER BY r.period_start
    LIMIT @row_limit
) AS series_periods
WHERE parent.tenant_id = @tenant_id AND parent.id = ANY(sqlc.slice('series_ids'))
ORDER BY series_periods.series_id, series_periods.period_start;

-- name: ListPeriodsOfSeriesBackward :many
SELECT series_periods.* FROM invoice_series parent
CROSS JOIN LATERAL (
    SELECT * FROM series_periods r
    WHERE r.tenant_id = @tenant_id AND r.series_id = parent.id
      AND r.period_start > @after_period::date AND r.period_start < @before_period::date
    ORDER BY r.period_start DESC
    LIMIT @row_limit
) AS series_periods
WHERE parent.tenant_id = @tenant_id AND parent.id = ANY(sqlc.slice('series_ids'))
ORDER BY series_periods.series_id, series_periods.period_start DESC;

-- name: FindSeriesPeriod :one
SELECT * FROM series_periods
WHERE tenant_id = @tenant_id AND series_id = @series_id AND period_start = @period_start;

-- name: LastLedgerPeriod :one
-- The latest period that has numbers.
SELECT greatest('0001-01-01',
           (SELECT max(i.period_start) FROM invoices i WHERE i.tenant_id = @tenant_id AND i.series_id = @series_id),
           (SELECT max(e.period_start) FROM series_entries e WHERE e.tenant_id = @tenant_id AND e.series_id = @series_id)
       )::date AS period_start;

-- name: RecordLeftPeriods :execrows
-- Under LockSeriesCounter: what was numbered in the periods from one up to another, where that was not
-- recorded.
INSERT INTO series_periods (tenant_id, series_id, period_start, first_number, last_number, closed_at)
SELECT @tenant_id, @series_id, l.period_start, 1, max(l.last_number), @closed_at
FROM (
    SELECT i.tenant_id, i.series_id, i.period_start, i.sequence AS last_number FROM invoices i
    WHERE i.tenant_id = @tenant_id AND i.series_id = @series_id AND i.period_start >= @from_period::date AND i.period_start < @before_period::date
    UNION ALL
    SELECT e.tenant_id, e.series_id, e.period_start, e.last_number FROM series_entries e
    WHERE e.tenant_id = @tenant_id AND e.series_id = @series_id AND e.period_start >= @from_period::date AND e.period_start < @before_period::date
) l
WHERE NOT EXISTS (
    SELECT FROM series_periods p
    WHERE p.tenant_id = l.tenant_id AND p.series_id = l.series_id AND p.period_start = l.period_start
)
GROUP BY l.period_start;

-- name: InsertSeriesEntries :execrows
-- In the order of their numbers, so that two imports wait for each other and do not deadlock. The
-- empty text stands for none.
INSERT INTO series_entries (
    tenant_id, series_id, period_start, first_number, last_number, change_id, state, issue_date, reference, reason
)
SELECT @tenant_id, @series_id, @period_start, e.first_number, e.last_number, @change_id, e.state,
       nullif(e.issue_date, '')::date, nullif(e.reference, ''), e.reason
FROM ROWS FROM (
    unnest(@first_numbers::bigint[]), unnest(@last_numbers::bigint[]), unnest(@states::text[]),
    unnest(@issue_dates::text[]), unnest(@reference_texts::text[]), unnest(@reasons::text[])
) AS e (first_number, last_number, state, issue_date, reference, reason);

-- name: AdvanceSeriesCounter :one
-- Under LockSeriesCounter: the counter moves beyond what is numbered. The guard: it stands where it was
-- when that was decided, and only ever moves forward.
UPDATE series_counters
SET next_number = @next_number
WHERE tenant_id = @tenant_id AND series_id = @series_id AND next_number = @expected_number AND next_number < @next_number
RETURNING *;

-- name: LastSeriesChange :one
SELECT coalesce(max(position), 0)::integer AS position FROM series_changes
WHERE tenant_id = @tenant_id AND series_id = @series_id;

-- name: InsertSeriesChange :one
-- The primary key decides between two changes that took themselves for the next.
INSERT INTO series_changes (
    tenant_id, series_id, position, id, kind, period_start, first_number, last_number,
    imported_numbers, voided_numbers, skipped_numbers, next_number_before, next_number,
    reason, operation_id, operation_fingerprint, changed_by, changed_at
)
VALUES (
    @tenant_id, @series_id, @position, @id, @kind, @period_start, @first_number, @last_number,
    @imported_numbers, @voided_numbers, @skipped_numbers, @next_number_before, @next_number,
    @reason, @operation_id, @operation_fingerprint, @changed_by, @changed_at
)
RETURNING *;

-- name: FindSeriesChange :one
SELECT * FROM series_changes WHERE tenant_id = @tenant_id AND operation_id = @operation_id;

-- name: ListChangesOfSeries :many
-- A page for each of the series, of the changes that were made of it.
SELECT series_changes.* FROM invoice_series parent
CROSS JOIN LATERAL (
    SELECT * FROM series_changes r
    WHERE r.tenant_id = @tenant_id AND r.series_id = parent.id
      AND r.position > @after_position::integer AND r.position < @before_position::integer
    ORDER BY r.position
    LIMIT @row_limit
) AS series_changes
WHERE parent.tenant_id = @tenant_id AND parent.id = ANY(sqlc.slice('series_ids'))
ORDER BY series_changes.series_id, series_changes.position;

-- name: ListChangesOfSeriesBackward :many
SELECT series_changes.* FROM invoice_series parent
CROSS JOIN LATERAL (
    SELECT * FROM series_changes r
    WHERE r.tenant_id = @tenant_id AND r.series_id = parent.id
      AND r.position > @after_position::integer AND r.position < @before_position::integer
    ORDER BY r.position DESC
    LIMIT @row_limit
) AS series_changes
WHERE parent.tenant_id = @tenant_id AND parent.id = ANY(sqlc.slice('series_ids'))
ORDER BY series_changes.series_id, series_changes.position DESC;

-- name: ListEntriesOfChange :many
SELECT * FROM series_entries
WHERE tenant_id = @tenant_id AND series_id = @series_id AND period_start = @period_start
  AND first_number >= @first_number::bigint AND first_number <= @last_number::bigint AND change_id = @change_id
ORDER BY first_number
LIMIT @row_limit;
