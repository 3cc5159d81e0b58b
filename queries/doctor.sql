-- name: EveryInvoicingViolation :many
-- What must hold of numbers and invoices at any moment, of one tenant or (the zero id) of all. A
-- row is a violation: which invariant, of which tenant, in words, and the ids it is about, each
-- with the prefix it is printed by.
WITH numbered AS (
    SELECT i.tenant_id, i.id, i.series_id, i.period_start, i.sequence, i.issue_date,
           lag(i.sequence, 1, 0) OVER in_series AS previous,
           lag(i.issue_date) OVER in_series AS previous_date
    FROM invoices i
    WHERE i.sequence IS NOT NULL AND (i.tenant_id = @tenant_id OR @tenant_id = '00000000-0000-0000-0000-000000000000')
    WINDOW in_series AS (PARTITION BY i.tenant_id, i.series_id, i.period_start ORDER BY i.sequence, i.id)
), last_number AS (
    SELECT n.tenant_id, n.series_id, n.period_start, max(n.sequence) AS sequence, max(n.issue_date) AS issue_date
    FROM numbered n GROUP BY n.tenant_id, n.series_id, n.period_start
), operations AS (
    SELECT 'inv' AS kind, i.tenant_id, i.operation_id, i.id FROM invoices i
    UNION ALL SELECT 'ser', s.tenant_id, s.operation_id, s.id FROM invoice_series s
    UNION ALL SELECT 'cus', c.tenant_id, c.operation_id, c.id FROM customers c
)
SELECT 'SERIES_CONTIGUOUS'::text AS invariant, n.tenant_id, ARRAY['ser']::text[] AS kinds, ARRAY[n.series_id]::uuid[] AS ids,
       format('the series has no number %s', CASE WHEN n.sequence - n.previous = 2 THEN (n.previous + 1)::text
              ELSE format('%s to %s', n.previous + 1, n.sequence - 1) END)::text AS message
FROM numbered n WHERE n.sequence > n.previous + 1

UNION ALL
SELECT 'SERIES_CONTIGUOUS', n.tenant_id, ARRAY['inv'], ARRAY[n.id],
       format('number %s of its series is given twice', n.sequence)
FROM numbered n WHERE n.sequence = n.previous

UNION ALL
SELECT 'SERIES_CHRONOLOGICAL', n.tenant_id, ARRAY['inv'], ARRAY[n.id],
       format('issued on %s, after a number that was issued on %s', n.issue_date, n.previous_date)
FROM numbered n WHERE n.issue_date < n.previous_date

UNION ALL
SELECT 'NUMBER_UNIQUE', i.tenant_id, array_agg('inv'::text), array_agg(i.id ORDER BY i.id), format('the printed number %s is on %s invoices', i.number, count(*))
FROM invoices i
WHERE i.number IS NOT NULL AND (i.tenant_id = @tenant_id OR @tenant_id = '00000000-0000-0000-0000-000000000000')
GROUP BY i.tenant_id, i.number HAVING count(*) > 1

UNION ALL
SELECT 'TOTAL_IS_SUM_OF_LINES', i.tenant_id, ARRAY['inv'], ARRAY[i.id],
       format('the total is %s, its lines and rounding sum to %s', i.total_minor, trim_scale(coalesce(l.exact, 0) + i.rounding_adjustment))
FROM invoices i
LEFT JOIN (
    SELECT invoice_lines.tenant_id, invoice_lines.invoice_id, sum(invoice_lines.exact_amount) AS exact
    FROM invoice_lines GROUP BY invoice_lines.tenant_id, invoice_lines.invoice_id
) l ON l.tenant_id = i.tenant_id AND l.invoice_id = i.id
WHERE i.total_minor <> coalesce(l.exact, 0) + i.rounding_adjustment
  AND (i.tenant_id = @tenant_id OR @tenant_id = '00000000-0000-0000-0000-000000000000')

UNION ALL
SELECT 'COUNTER_MATCHES_DATA', s.tenant_id, ARRAY['ser'], ARRAY[s.id],
       CASE WHEN c.series_id IS NULL THEN 'the series has no counter'
            WHEN c.next_number <> coalesce(l.sequence, 0) + 1
            THEN format('the counter is at %s, the last number is %s', c.next_number, coalesce(l.sequence, 0))
            WHEN c.last_issue_date IS NULL THEN format('the counter has no last issue date, the last invoice''s is %s', l.issue_date)
            ELSE format('the counter''s last issue date is %s, the last invoice''s is %s', c.last_issue_date, l.issue_date) END
FROM invoice_series s
LEFT JOIN series_counters c ON c.tenant_id = s.tenant_id AND c.series_id = s.id
LEFT JOIN last_number l ON l.tenant_id = c.tenant_id AND l.series_id = c.series_id AND l.period_start = c.period_start
WHERE (c.series_id IS NULL OR c.next_number <> coalesce(l.sequence, 0) + 1 OR coalesce(c.last_issue_date < l.issue_date, l.issue_date IS NOT NULL))
  AND (s.tenant_id = @tenant_id OR @tenant_id = '00000000-0000-0000-0000-000000000000')

UNION ALL
SELECT 'OPERATION_ONCE', o.tenant_id, array_agg(o.kind ORDER BY o.id), array_agg(o.id ORDER BY o.id), format('the operation %s stands in %s rows', o.operation_id, count(*))
FROM operations o
WHERE o.tenant_id = @tenant_id OR @tenant_id = '00000000-0000-0000-0000-000000000000'
GROUP BY o.tenant_id, o.operation_id HAVING count(*) > 1

ORDER BY 1, 2, 4;
