-- name: EveryInvoicingViolation :many
-- What must hold of numbers and invoices at any moment, of one tenant or (the zero id) of all. A
-- row is a violation: which invariant, of which tenant, in words, and the ids it is about, each
-- with the prefix it is printed by.
WITH numbered AS ( -- what has numbers: invoices, and entries of the ledger, which are known by their series
    SELECT l.tenant_id, l.kind, l.id, l.series_id, l.period_start, l.first_number, l.last_number, l.issue_date,
           coalesce(max(l.last_number) OVER (in_series ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS previous,
           max(CASE WHEN l.kind = 'inv' THEN l.issue_date END) OVER (
               PARTITION BY l.tenant_id, l.series_id ORDER BY l.period_start, l.first_number, l.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
           ) AS previous_date
    FROM (
        SELECT i.tenant_id, 'inv' AS kind, i.id, i.series_id, i.period_start, i.sequence AS first_number, i.sequence AS last_number, i.issue_date
        FROM invoices i
        WHERE i.sequence IS NOT NULL AND (i.tenant_id = @tenant_id OR @tenant_id = '00000000-0000-0000-0000-000000000000')
        UNION ALL
        SELECT e.tenant_id, 'ser', e.series_id, e.series_id, e.period_start, e.first_number, e.last_number, e.issue_date
        FROM series_entries e
        WHERE e.tenant_id = @tenant_id OR @tenant_id = '00000000-0000-0000-0000-000000000000'
    ) l
    WINDOW in_series AS (PARTITION BY l.tenant_id, l.series_id, l.period_start ORDER BY l.first_number, l.id)
), last_number AS (
    SELECT n.tenant_id, n.series_id, n.period_start, max(n.last_number) AS sequence, max(n.issue_date) FILTER (WHERE n.kind = 'inv') AS issue_date
    FROM numbered n GROUP BY n.tenant_id, n.series_id, n.period_start
), left_period AS ( -- each period that was left, by its record or by its numbers
    SELECT coalesce(p.tenant_id, l.tenant_id) AS tenant_id, coalesce(p.series_id, l.series_id) AS series_id,
           coalesce(p.period_start, l.period_start) AS period_start, p.last_number AS recorded, l.sequence AS last_number,
           c.period_start AS current
    FROM (SELECT p.* FROM series_periods p WHERE p.tenant_id = @tenant_id OR @tenant_id = '00000000-0000-0000-0000-000000000000') p
    FULL JOIN last_number l ON l.tenant_id = p.tenant_id AND l.series_id = p.series_id AND l.period_start = p.period_start
    LEFT JOIN series_counters c ON c.tenant_id = coalesce(p.tenant_id, l.tenant_id) AND c.series_id = coalesce(p.series_id, l.series_id)
    WHERE p.series_id IS NOT NULL OR l.period_start <> c.period_start
), summed AS (
    SELECT l.tenant_id, l.invoice_id, sum(l.exact_amount + CASE WHEN l.tax_treatment = 'EXCLUSIVE' THEN l.tax_minor ELSE 0 END) AS exact, sum(l.tax_minor) AS tax
    FROM invoice_lines l
    JOIN invoices i ON i.tenant_id = l.tenant_id AND i.id = l.invoice_id
    WHERE l.position >= i.lines_from -- what an edit of a draft has replaced stays before them
    GROUP BY l.tenant_id, l.invoice_id
), operations AS (
    SELECT 'inv' AS kind, i.tenant_id, i.operation_id, i.id FROM invoices i
    UNION ALL SELECT 'ser', s.tenant_id, s.operation_id, s.id FROM invoice_series s
    UNION ALL SELECT 'ser', g.tenant_id, g.operation_id, g.series_id FROM series_changes g
    UNION ALL SELECT 'cus', c.tenant_id, c.operation_id, c.id FROM customers c
    UNION ALL SELECT 'cus', r.tenant_id, r.operation_id, r.customer_id FROM customer_revisions r WHERE r.revision > 1 -- the first is made with the customer
    UNION ALL SELECT 'ten', r.tenant_id, r.operation_id, r.tenant_id FROM seller_revisions r
    UNION ALL SELECT 'prd', p.tenant_id, p.operation_id, p.id FROM products p
    UNION ALL SELECT 'prd', p.tenant_id, p.operation_id, p.product_id FROM product_changes p
    UNION ALL SELECT 'exm', e.tenant_id, e.operation_id, e.id FROM billing_exemptions e
    UNION ALL SELECT 'exm', e.tenant_id, e.end_operation_id, e.id FROM billing_exemptions e WHERE e.end_operation_id IS NOT NULL
    UNION ALL SELECT 'key', k.tenant_id, k.operation_id, k.id FROM api_keys k
    UNION ALL SELECT 'key', r.tenant_id, r.operation_id, r.api_key_id FROM api_key_revocations r
    UNION ALL SELECT 'inv', h.tenant_id, h.operation_id, h.invoice_id FROM invoice_history h WHERE h.event <> 'CREDITED' -- that is the credit note's own
    UNION ALL SELECT 'tok', a.tenant_id, a.operation_id, a.id FROM access_tokens a -- a rotation's is its successor's
    UNION ALL SELECT 'tok', h.tenant_id, h.operation_id, h.token_id FROM access_token_history h WHERE h.event = 'REVOKED'
    UNION ALL SELECT 'ord', h.tenant_id, h.operation_id, h.order_id FROM order_history h -- an order's own is that of its first step
)
SELECT 'SERIES_CONTIGUOUS'::text AS invariant, n.tenant_id, ARRAY['ser']::text[] AS kinds, ARRAY[n.series_id]::uuid[] AS ids,
       format('the series has no number %s', CASE WHEN n.first_number - n.previous = 2 THEN (n.previous + 1)::text
              ELSE format('%s to %s', n.previous + 1, n.first_number - 1) END)::text AS message
FROM numbered n WHERE n.first_number > n.previous + 1

UNION ALL
SELECT 'SERIES_CONTIGUOUS', n.tenant_id, ARRAY[n.kind], ARRAY[n.id],
       format('number %s of its series is given twice', n.first_number)
FROM numbered n WHERE n.first_number <= n.previous

UNION ALL
SELECT 'LEDGER_RECORDED', coalesce(e.tenant_id, c.tenant_id), ARRAY['ser'], ARRAY[coalesce(e.series_id, c.series_id)],
       format('a change of the series has entries for %s numbers, and its record says %s', coalesce(e.numbers, 0),
              coalesce(c.imported_numbers + c.voided_numbers + c.skipped_numbers, 0))
FROM (
    SELECT series_entries.tenant_id, series_entries.series_id, series_entries.period_start, series_entries.change_id,
           sum(series_entries.last_number - series_entries.first_number + 1) AS numbers
    FROM series_entries
    GROUP BY series_entries.tenant_id, series_entries.series_id, series_entries.period_start, series_entries.change_id
) e
FULL JOIN series_changes c ON c.tenant_id = e.tenant_id AND c.series_id = e.series_id AND c.period_start = e.period_start AND c.id = e.change_id
WHERE coalesce(e.numbers, 0) <> coalesce(c.imported_numbers + c.voided_numbers + c.skipped_numbers, 0)
  AND (coalesce(e.tenant_id, c.tenant_id) = @tenant_id OR @tenant_id = '00000000-0000-0000-0000-000000000000')

UNION ALL
SELECT 'SERIES_CHRONOLOGICAL', n.tenant_id, ARRAY['inv'], ARRAY[n.id],
       format('issued on %s, after a number that was issued on %s', n.issue_date, n.previous_date)
FROM numbered n WHERE n.kind = 'inv' AND n.issue_date < n.previous_date

UNION ALL
SELECT 'NUMBER_IN_ITS_PERIOD', n.tenant_id, ARRAY[n.kind], ARRAY[n.id],
       format('issued on %s, which is not in the period that begins on %s', n.issue_date, n.period_start)
FROM numbered n
JOIN invoice_series s ON s.tenant_id = n.tenant_id AND s.id = n.series_id
WHERE n.period_start <> CASE s.reset
          WHEN 'YEARLY' THEN date_trunc('year', n.issue_date::timestamp)::date
          WHEN 'MONTHLY' THEN date_trunc('month', n.issue_date::timestamp)::date
          WHEN 'FISCAL_YEARLY' THEN (date_trunc('year', n.issue_date - make_interval(months => s.fiscal_year_start - 1))
                                     + make_interval(months => s.fiscal_year_start - 1))::date
          ELSE '0001-01-01'::date END

UNION ALL
SELECT 'PERIOD_RECORDED', p.tenant_id, ARRAY['ser'], ARRAY[p.series_id],
       CASE WHEN p.period_start > p.current THEN format('there are numbers of the period that begins on %s, and the counter is in the one of %s', p.period_start, p.current)
            WHEN p.period_start = p.current THEN format('the period that begins on %s is recorded as left, and the counter is in it', p.period_start)
            WHEN p.recorded IS NULL THEN format('the period that begins on %s was left, and there is no record of it', p.period_start)
            ELSE format('the record of the period that begins on %s ends at %s, its last number is %s', p.period_start, p.recorded, coalesce(p.last_number, 0)) END
FROM left_period p
WHERE p.period_start >= p.current OR p.recorded IS DISTINCT FROM p.last_number

UNION ALL
SELECT 'NUMBER_UNIQUE', i.tenant_id, array_agg('inv'::text), array_agg(i.id ORDER BY i.id), format('the printed number %s is on %s invoices', i.number, count(*))
FROM invoices i
WHERE i.number IS NOT NULL AND (i.tenant_id = @tenant_id OR @tenant_id = '00000000-0000-0000-0000-000000000000')
GROUP BY i.tenant_id, i.number HAVING count(*) > 1

UNION ALL
SELECT 'TOTAL_IS_SUM_OF_LINES', i.tenant_id, ARRAY['inv'], ARRAY[i.id],
       format('the total is %s, its lines and rounding sum to %s', i.total_minor, trim_scale(coalesce(l.exact, 0) + i.rounding_adjustment))
FROM invoices i
LEFT JOIN summed l ON l.tenant_id = i.tenant_id AND l.invoice_id = i.id
WHERE i.total_minor <> coalesce(l.exact, 0) + i.rounding_adjustment
  AND (i.tenant_id = @tenant_id OR @tenant_id = '00000000-0000-0000-0000-000000000000')

UNION ALL
SELECT 'COUNTER_MATCHES_DATA', s.tenant_id, ARRAY['ser'], ARRAY[s.id],
       CASE WHEN c.series_id IS NULL THEN 'the series has no counter'
            WHEN c.next_number <> coalesce(l.sequence, 0) + 1
            THEN format('the counter is at %s, the last number is %s', c.next_number, coalesce(l.sequence, 0))
            WHEN c.last_issue_date < c.period_start THEN format('the counter is in the period that begins on %s, its last issue date is %s', c.period_start, c.last_issue_date)
            WHEN c.last_issue_date IS NULL THEN format('the counter has no last issue date, the last invoice''s is %s', l.issue_date)
            ELSE format('the counter''s last issue date is %s, the last invoice''s is %s', c.last_issue_date, l.issue_date) END
FROM invoice_series s
LEFT JOIN series_counters c ON c.tenant_id = s.tenant_id AND c.series_id = s.id
LEFT JOIN last_number l ON l.tenant_id = c.tenant_id AND l.series_id = c.series_id AND l.period_start = c.period_start
WHERE (c.series_id IS NULL OR c.next_number <> coalesce(l.sequence, 0) + 1 OR coalesce(c.last_issue_date < l.issue_date, l.issue_date IS NOT NULL)
       OR c.last_issue_date < c.period_start)
  AND (s.tenant_id = @tenant_id OR @tenant_id = '00000000-0000-0000-0000-000000000000')

UNION ALL
SELECT 'OPERATION_ONCE', o.tenant_id, array_agg(o.kind ORDER BY o.id), array_agg(o.id ORDER BY o.id), format('the operation %s stands in %s rows', o.operation_id, count(*))
FROM operations o
WHERE o.tenant_id = @tenant_id OR @tenant_id = '00000000-0000-0000-0000-000000000000'
GROUP BY o.tenant_id, o.operation_id HAVING count(*) > 1

ORDER BY 1, 2, 4;

-- name: EveryInvoiceLifeViolation :many
-- What must hold of an invoice's life at any moment; see EveryInvoicingViolation.
WITH these AS (
    SELECT i.* FROM invoices i WHERE i.tenant_id = @tenant_id OR @tenant_id = '00000000-0000-0000-0000-000000000000'
), step AS (
    SELECT h.tenant_id, h.invoice_id, h.position, h.event, h.from_status, h.to_status,
           lag(h.position, 1, 0) OVER in_order + 1 AS expected_position, lag(h.to_status) OVER in_order AS previous_status,
           lead(h.position) OVER in_order IS NULL AS is_last
    FROM invoice_history h
    WHERE h.tenant_id = @tenant_id OR @tenant_id = '00000000-0000-0000-0000-000000000000'
    WINDOW in_order AS (PARTITION BY h.tenant_id, h.invoice_id ORDER BY h.position, h.id)
)
SELECT 'TAX_IS_SUM_OF_LINES'::text AS invariant, i.tenant_id, ARRAY['inv']::text[] AS kinds, ARRAY[i.id]::uuid[] AS ids,
       format('the tax is %s, its lines'' taxes sum to %s', i.tax_minor, coalesce(l.tax, 0))::text AS message
FROM these i
LEFT JOIN (
    SELECT l.tenant_id, l.invoice_id, sum(l.tax_minor) AS tax
    FROM invoice_lines l
    JOIN these ON these.tenant_id = l.tenant_id AND these.id = l.invoice_id
    WHERE l.position >= these.lines_from
    GROUP BY l.tenant_id, l.invoice_id
) l ON l.tenant_id = i.tenant_id AND l.invoice_id = i.id
WHERE i.tax_minor <> coalesce(l.tax, 0)

UNION ALL
SELECT 'DRAFT_NOT_NUMBERED', i.tenant_id, ARRAY['inv'], ARRAY[i.id], format('the draft has the number %s', i.number)
FROM these i WHERE i.status IN ('DRAFT', 'DELETED') AND i.number IS NOT NULL

UNION ALL
SELECT 'PARTIES_FROZEN', i.tenant_id, ARRAY['inv'], ARRAY[i.id],
       CASE WHEN i.number IS NULL THEN 'the invoice has no number, and its parties are frozen'
            WHEN s.revision IS NULL THEN 'the invoice has a number, and no seller' ELSE 'the invoice has a number, and no buyer' END
FROM these i
LEFT JOIN seller_revisions s ON s.tenant_id = i.tenant_id AND s.revision = i.seller_revision
LEFT JOIN customer_revisions b ON b.tenant_id = i.tenant_id AND b.customer_id = i.customer_id AND b.revision = i.buyer_revision
WHERE CASE WHEN i.number IS NULL THEN i.seller_revision IS NOT NULL OR i.buyer_revision IS NOT NULL ELSE s.revision IS NULL OR b.revision IS NULL END

UNION ALL
SELECT 'PARTY_IS_ITS_LAST_REVISION', c.tenant_id, ARRAY['cus'], ARRAY[c.id], format('the customer is not what its revision %s says, or that is not the last', c.revision)
FROM customers c
LEFT JOIN customer_revisions r ON r.tenant_id = c.tenant_id AND r.customer_id = c.id AND r.revision = c.revision
LEFT JOIN (
    SELECT customer_revisions.tenant_id, customer_revisions.customer_id, max(customer_revisions.revision) AS revision
    FROM customer_revisions GROUP BY customer_revisions.tenant_id, customer_revisions.customer_id
) latest ON latest.tenant_id = c.tenant_id AND latest.customer_id = c.id
WHERE (c.name, c.email, c.address, c.tax_ids, c.revision) IS DISTINCT FROM (r.name, r.email, r.address, r.tax_ids, latest.revision)
  AND (c.tenant_id = @tenant_id OR @tenant_id = '00000000-0000-0000-0000-000000000000')

UNION ALL
SELECT 'PARTY_IS_ITS_LAST_REVISION', s.tenant_id, ARRAY['ten'], ARRAY[s.tenant_id], format('the seller is not what its revision %s says, or that is not the last', s.revision)
FROM sellers s
LEFT JOIN seller_revisions r ON r.tenant_id = s.tenant_id AND r.revision = s.revision
LEFT JOIN (SELECT seller_revisions.tenant_id, max(seller_revisions.revision) AS revision FROM seller_revisions GROUP BY seller_revisions.tenant_id) latest ON latest.tenant_id = s.tenant_id
WHERE (s.name, s.email, s.address, s.tax_ids, s.revision) IS DISTINCT FROM (r.name, r.email, r.address, r.tax_ids, latest.revision)
  AND (s.tenant_id = @tenant_id OR @tenant_id = '00000000-0000-0000-0000-000000000000')

UNION ALL
SELECT 'PAYMENTS_ACCOUNTED_FOR', i.tenant_id, ARRAY['inv'], ARRAY[i.id], format('it is said that %s is paid, the payments sum to %s', i.paid_minor, coalesce(p.amount, 0))
FROM these i
LEFT JOIN (
    SELECT p.tenant_id, p.invoice_id, sum(p.amount_minor) AS amount, min(p.currency) AS least, max(p.currency) AS most
    FROM invoice_payments p GROUP BY p.tenant_id, p.invoice_id
) p ON p.tenant_id = i.tenant_id AND p.invoice_id = i.id
WHERE i.paid_minor <> coalesce(p.amount, 0) OR p.least <> i.currency OR p.most <> i.currency

UNION ALL
SELECT 'CREDITS_ACCOUNTED_FOR', i.tenant_id, ARRAY['inv'], ARRAY[i.id],
       format('it is said that %s is credited and %s to be given back, the credit notes sum to %s and %s; the total is %s',
              i.credited_minor, i.refund_due_minor, coalesce(n.amount, 0), coalesce(n.refund, 0), i.total_minor)
FROM these i
LEFT JOIN (
    SELECT n.tenant_id, n.credits_invoice_id, sum(n.total_minor) AS amount, sum(n.refund_due_minor) AS refund
    FROM invoices n WHERE n.kind = 'CREDIT_NOTE' GROUP BY n.tenant_id, n.credits_invoice_id
) n ON n.tenant_id = i.tenant_id AND n.credits_invoice_id = i.id
WHERE i.kind <> 'CREDIT_NOTE' AND (i.credited_minor <> coalesce(n.amount, 0) OR i.refund_due_minor <> coalesce(n.refund, 0) OR i.credited_minor > i.total_minor)

UNION ALL
SELECT 'CREDITS_ACCOUNTED_FOR', n.tenant_id, ARRAY['inv', 'inv'], ARRAY[n.id, i.id], 'it credits an invoice of another customer, or in another currency, or one that was never final'
FROM these n
JOIN invoices i ON i.tenant_id = n.tenant_id AND i.id = n.credits_invoice_id
WHERE n.customer_id <> i.customer_id OR n.currency <> i.currency OR i.number IS NULL OR i.kind = 'CREDIT_NOTE'

UNION ALL
-- In whole minor units a line of usage is one more or less than its exact amount.
SELECT 'CREDITS_ACCOUNTED_FOR', i.tenant_id, ARRAY['inv'], ARRAY[i.id], format('line %s comes to %s, and %s of it is credited', l.position, trim_scale(l.exact_amount), c.gross)
FROM these i
JOIN (
    SELECT n.tenant_id, n.credits_invoice_id, c.credits_line, sum(c.exact_amount + CASE WHEN c.tax_treatment = 'EXCLUSIVE' THEN c.tax_minor ELSE 0 END) AS gross
    FROM invoice_lines c
    JOIN invoices n ON n.tenant_id = c.tenant_id AND n.id = c.invoice_id
    WHERE c.credits_line IS NOT NULL
    GROUP BY n.tenant_id, n.credits_invoice_id, c.credits_line
) c ON c.tenant_id = i.tenant_id AND c.credits_invoice_id = i.id
JOIN invoice_lines l ON l.tenant_id = i.tenant_id AND l.invoice_id = i.id AND l.position = c.credits_line
WHERE abs(c.gross) >= abs(l.exact_amount + CASE WHEN l.tax_treatment = 'EXCLUSIVE' THEN l.tax_minor ELSE 0 END) + 1 OR c.gross * l.exact_amount < 0

UNION ALL
SELECT 'CREDIT_AFTER_INVOICE', n.tenant_id, ARRAY['inv', 'inv'], ARRAY[n.id, i.id], format('issued on %s, and credits an invoice that was issued on %s', n.issue_date, i.issue_date)
FROM these n
JOIN invoices i ON i.tenant_id = n.tenant_id AND i.id = n.credits_invoice_id
WHERE n.issue_date < i.issue_date

UNION ALL
SELECT 'SETTLED_EXACTLY', i.tenant_id, ARRAY['inv'], ARRAY[i.id],
       format('the invoice is %s: of %s, %s is paid and %s credited, of which %s is to be given back', i.status, i.total_minor, i.paid_minor, i.credited_minor, i.refund_due_minor)
FROM these i
WHERE i.kind <> 'CREDIT_NOTE' AND CASE WHEN i.status = 'PAID' THEN i.paid_minor - i.refund_due_minor <> i.total_minor - i.credited_minor
                                       ELSE i.paid_minor - i.refund_due_minor > i.total_minor - i.credited_minor END
   OR i.status NOT IN ('PENDING', 'PAID', 'WAIVED') AND (i.paid_minor <> 0 OR i.credited_minor <> 0)

UNION ALL
SELECT 'REPLACEMENT_STANDS', i.tenant_id, ARRAY['inv', 'inv'], ARRAY[i.id, r.id], format('it is %s, and replaced by what is of another customer, no invoice, or replaced by it', i.status)
FROM these i
JOIN invoices r ON r.tenant_id = i.tenant_id AND r.id = i.replaced_by
WHERE r.customer_id <> i.customer_id OR r.id = i.id OR i.status <> 'VOID' OR r.kind = 'CREDIT_NOTE' OR r.status IN ('DRAFT', 'DELETED')
   OR r.replaced_by = i.id

UNION ALL
SELECT 'INVOICE_HISTORY_LEGAL', i.tenant_id, ARRAY['inv'], ARRAY[i.id],
       CASE WHEN s.invoice_id IS NULL THEN format('the invoice is %s, and nothing says how it came there', i.status)
            WHEN s.position > s.expected_position THEN format('step %s is missing', s.expected_position)
            WHEN s.position < s.expected_position THEN format('step %s is taken twice', s.position)
            WHEN s.from_status <> s.previous_status THEN format('step %s begins at %s, the one before ended at %s', s.position, s.from_status, s.previous_status)
            WHEN s.is_last AND s.to_status <> i.status THEN format('the invoice is %s, its last step ended at %s', i.status, s.to_status)
            ELSE format('step %s, %s, goes from %s to %s', s.position, s.event, s.from_status, s.to_status) END
FROM these i
LEFT JOIN step s ON s.tenant_id = i.tenant_id AND s.invoice_id = i.id
WHERE s.invoice_id IS NULL AND i.status IN ('DELETED', 'PAID', 'VOID')
   OR s.position <> s.expected_position OR s.from_status <> s.previous_status
   OR s.is_last AND s.to_status <> i.status
   OR s.from_status = s.to_status AND (s.event, s.to_status) NOT IN (
        ('EDITED', 'DRAFT'), ('PART_PAID', 'PENDING'), ('CREDITED', 'PENDING'), ('CREDITED', 'PAID'), ('FINALISED', 'WAIVED'))
   OR s.from_status <> s.to_status AND (s.from_status, s.to_status) NOT IN (
        ('DRAFT', 'PENDING'), ('DRAFT', 'DELETED'), ('OPEN', 'PENDING'), ('OPEN', 'PAID'), ('OPEN', 'WAIVED'), ('OPEN', 'VOID'),
        ('PENDING', 'PAID'), ('PENDING', 'WAIVED'), ('PENDING', 'VOID'), ('WAIVED', 'OPEN'), ('WAIVED', 'PENDING'), ('WAIVED', 'VOID'))

ORDER BY 1, 2, 4;

-- name: EveryOrderingViolation :many
-- What must hold of orders and their money at any moment; see EveryInvoicingViolation.
WITH these AS (
    SELECT o.* FROM orders o WHERE o.tenant_id = @tenant_id OR @tenant_id = '00000000-0000-0000-0000-000000000000'
), step AS (
    SELECT h.tenant_id, h.order_id, h.position, h.from_status, h.to_status,
           lag(h.position, 1, 0) OVER in_order + 1 AS expected_position, lag(h.to_status) OVER in_order AS previous_status,
           lead(h.position) OVER in_order IS NULL AS is_last
    FROM order_history h
    WHERE h.tenant_id = @tenant_id OR @tenant_id = '00000000-0000-0000-0000-000000000000'
    WINDOW in_order AS (PARTITION BY h.tenant_id, h.order_id ORDER BY h.position, h.id)
), applied AS (
    SELECT c.tenant_id, c.order_id, count(*) AS captures, sum(c.amount_minor)::bigint AS amount_minor, min(c.currency) AS currency
    FROM captures c WHERE c.state = 'APPLIED' GROUP BY c.tenant_id, c.order_id
), refunded AS (
    SELECT r.tenant_id, r.order_id, sum(r.amount_minor)::bigint AS reserved_minor,
           (sum(r.amount_minor) FILTER (WHERE r.status = 'SUCCEEDED'))::bigint AS succeeded_minor
    FROM refunds r
    JOIN captures c ON c.tenant_id = r.tenant_id AND c.provider = r.provider AND c.provider_payment_id = r.provider_payment_id AND c.state = 'APPLIED'
    WHERE r.status <> 'FAILED' GROUP BY r.tenant_id, r.order_id
)
SELECT 'ORDER_TOTAL_IS_SUM_OF_LINES'::text AS invariant, o.tenant_id, ARRAY['ord']::text[] AS kinds, ARRAY[o.id]::uuid[] AS ids,
       format('the total is %s, its lines sum to %s', o.total_minor, coalesce(l.amount, 0))::text AS message
FROM these o
LEFT JOIN (
    SELECT order_lines.tenant_id, order_lines.order_id, sum(order_lines.amount_minor) AS amount
    FROM order_lines GROUP BY order_lines.tenant_id, order_lines.order_id
) l ON l.tenant_id = o.tenant_id AND l.order_id = o.id
WHERE o.total_minor <> coalesce(l.amount, 0)

UNION ALL
SELECT 'ORDER_ONE_PER_KEY', o.tenant_id, array_agg('ord'::text), array_agg(o.id ORDER BY o.id), format('one key placed %s orders', count(*))
FROM these o GROUP BY o.tenant_id, o.customer_id, o.idempotency_key HAVING count(*) > 1

UNION ALL
SELECT 'ORDER_HISTORY_LEGAL', o.tenant_id, ARRAY['ord'], ARRAY[o.id],
       CASE WHEN s.order_id IS NULL THEN 'the order has no history'
            WHEN s.position > s.expected_position THEN format('step %s is missing', s.expected_position)
            WHEN s.position < s.expected_position THEN format('step %s is taken twice', s.position)
            WHEN s.from_status IS DISTINCT FROM s.previous_status THEN format('step %s begins at %s, the one before ended at %s', s.position, s.from_status, s.previous_status)
            WHEN s.is_last AND s.to_status <> o.status THEN format('the order is %s, its last step ended at %s', o.status, s.to_status)
            ELSE format('step %s goes from %s to %s', s.position, coalesce(s.from_status, 'nothing'), s.to_status) END
FROM these o
LEFT JOIN step s ON s.tenant_id = o.tenant_id AND s.order_id = o.id
WHERE s.order_id IS NULL OR s.position <> s.expected_position OR s.from_status IS DISTINCT FROM s.previous_status
   OR s.is_last AND s.to_status <> o.status
   OR (coalesce(s.from_status, ''), s.to_status) NOT IN (
        ('', 'PENDING'), ('PENDING', 'PAID'), ('PENDING', 'CANCELLED'), ('PAID', 'FULFILLED'), ('PAID', 'REFUNDED'), ('FULFILLED', 'REFUNDED'))
      AND s.from_status IS DISTINCT FROM s.to_status

UNION ALL
SELECT 'CAPTURE_ACCOUNTED_FOR', o.tenant_id, ARRAY['ord'], ARRAY[o.id],
       CASE WHEN a.captures IS NULL THEN format('the order is %s and nothing paid it', o.status)
            WHEN o.paid_at IS NULL THEN format('the order is %s, and a capture is said to pay it', o.status)
            WHEN a.captures > 1 THEN format('%s captures are said to pay it', a.captures)
            ELSE format('it costs %s %s and was paid %s %s', o.total_minor, o.currency, a.amount_minor, a.currency) END
FROM these o
LEFT JOIN applied a ON a.tenant_id = o.tenant_id AND a.order_id = o.id
WHERE (o.paid_at IS NOT NULL) <> (a.captures IS NOT NULL) OR a.captures > 1 OR a.amount_minor <> o.total_minor OR a.currency <> o.currency

UNION ALL
SELECT 'CAPTURE_ACCOUNTED_FOR', o.tenant_id, ARRAY['ord'], ARRAY[o.id], format('the capture %s is %s, and nobody is asked to look', c.provider_payment_id, c.state)
FROM these o
JOIN captures c ON c.tenant_id = o.tenant_id AND c.order_id = o.id
WHERE c.state IN ('FLAGGED', 'REFUND_DUE') AND c.amount_minor > 0 AND o.attention IS NULL

UNION ALL
SELECT 'CAPTURE_ACCOUNTED_FOR', o.tenant_id, ARRAY['ord'], ARRAY[o.id],
       format('the capture %s is %s, and %s of %s went back', c.provider_payment_id, c.state, coalesce(b.amount_minor, 0), c.amount_minor)
FROM these o
JOIN captures c ON c.tenant_id = o.tenant_id AND c.order_id = o.id
LEFT JOIN (
    SELECT refunds.tenant_id, refunds.provider, refunds.provider_payment_id, sum(refunds.amount_minor) AS amount_minor
    FROM refunds WHERE refunds.status = 'SUCCEEDED' GROUP BY refunds.tenant_id, refunds.provider, refunds.provider_payment_id
) b ON b.tenant_id = c.tenant_id AND b.provider = c.provider AND b.provider_payment_id = c.provider_payment_id
WHERE c.state <> 'APPLIED' AND c.amount_minor > 0 AND (c.state = 'RETURNED') <> (coalesce(b.amount_minor, 0) >= c.amount_minor)

UNION ALL
SELECT 'REFUNDS_ACCOUNTED_FOR', o.tenant_id, ARRAY['ord'], ARRAY[o.id],
       CASE WHEN o.refunded_minor <> coalesce(r.reserved_minor, 0)
            THEN format('it is said that %s is refunded, the refunds sum to %s', o.refunded_minor, coalesce(r.reserved_minor, 0))
            ELSE format('the order is %s, and %s of %s went back', o.status, coalesce(r.succeeded_minor, 0), o.total_minor) END
FROM these o
LEFT JOIN refunded r ON r.tenant_id = o.tenant_id AND r.order_id = o.id
WHERE o.refunded_minor <> coalesce(r.reserved_minor, 0)
   OR o.status = 'REFUNDED' AND coalesce(r.succeeded_minor, 0) <> o.total_minor
   OR o.status IN ('PAID', 'FULFILLED') AND o.total_minor > 0 AND r.succeeded_minor = o.total_minor

UNION ALL
SELECT 'EVENT_APPLIED_ONCE', r.tenant_id, array_agg('ref'::text), array_agg(r.id ORDER BY r.id), format('the provider''s refund %s stands in %s rows', r.provider_refund_id, count(*))
FROM refunds r
WHERE r.provider_refund_id IS NOT NULL AND (r.tenant_id = @tenant_id OR @tenant_id = '00000000-0000-0000-0000-000000000000')
GROUP BY r.tenant_id, r.provider, r.provider_refund_id HAVING count(*) > 1

ORDER BY 1, 2, 4;

-- name: EveryStrayEvent :many
-- Webhooks that wait and are about nothing that is ours: no violation, but an operator is to know.
SELECT provider, event_id, reference, received_at FROM ops.payment_events
WHERE processed_at IS NULL AND payment_events.tenant_id IS NULL
ORDER BY received_at, provider, event_id
LIMIT @row_limit;

-- name: EveryMeteringViolation :many
-- What must hold of usage and its settlements at any moment; see EveryInvoicingViolation. What was
-- metered is unsettled, pending, on an invoice, skipped or nothing: over disjoint terms, exactly.
WITH these AS (
    SELECT s.* FROM settlements s WHERE s.tenant_id = @tenant_id OR @tenant_id = '00000000-0000-0000-0000-000000000000'
), metered AS (
    SELECT u.tenant_id, u.settlement_id, sum(u.quantity) AS quantity,
           bool_and(u.api_key_id = s.api_key_id AND u.month = s.month) AS same_key_and_month
    FROM usage_events u
    JOIN settlements s ON s.tenant_id = u.tenant_id AND s.id = u.settlement_id
    GROUP BY u.tenant_id, u.settlement_id
), billed AS (
    SELECT l.tenant_id, l.settlement_id, count(*) AS lines, sum(l.exact_amount) AS amount, sum(l.quantity) AS quantity,
           bool_and(l.settlement_round = s.round AND l.invoice_id IS NOT DISTINCT FROM s.invoice_id) AS where_it_says
    FROM invoice_lines l
    JOIN invoices i ON i.tenant_id = l.tenant_id AND i.id = l.invoice_id AND i.status <> 'VOID'
    JOIN settlements s ON s.tenant_id = l.tenant_id AND s.id = l.settlement_id
    GROUP BY l.tenant_id, l.settlement_id
)
SELECT 'USAGE_CONSERVED'::text AS invariant, s.tenant_id, ARRAY['set', 'key']::text[] AS kinds, ARRAY[s.id, s.api_key_id]::uuid[] AS ids,
       CASE WHEN s.quantity = m.quantity THEN 'it settles usage of another key or month'
            ELSE format('it settles %s units, the usage it is the sum of is %s', s.quantity, coalesce(m.quantity, 0)) END::text AS message
FROM these s LEFT JOIN metered m ON m.tenant_id = s.tenant_id AND m.settlement_id = s.id
WHERE s.quantity <> coalesce(m.quantity, 0) OR NOT m.same_key_and_month

UNION ALL
SELECT 'USAGE_CONSERVED', s.tenant_id, ARRAY['set', 'key'], ARRAY[s.id, s.api_key_id],
       CASE WHEN s.outcome IN ('FOLDED', 'FOLDED_WAIVED', 'BILLED_SEPARATELY')
            THEN format('it is %s with %s, and stands on invoices %s times with %s', s.outcome, trim_scale(s.amount), coalesce(b.lines, 0), trim_scale(coalesce(b.amount, 0)))
            ELSE format('it is %s, and stands on invoices %s times', s.outcome, b.lines) END
FROM these s LEFT JOIN billed b ON b.tenant_id = s.tenant_id AND b.settlement_id = s.id
WHERE CASE WHEN s.outcome IN ('FOLDED', 'FOLDED_WAIVED', 'BILLED_SEPARATELY')
           THEN (b.lines = 1 AND b.amount = s.amount AND b.quantity = s.quantity AND b.where_it_says) IS NOT TRUE
           ELSE b.lines IS NOT NULL END

UNION ALL
SELECT 'USAGE_CONSERVED', s.tenant_id, ARRAY['set', 'key'], ARRAY[s.id, s.api_key_id], format('it is %s with %s', s.outcome, trim_scale(s.amount))
FROM these s WHERE s.outcome = 'SKIPPED_SUB_CENT' AND s.amount >= 1 OR s.outcome = 'NOTHING_TO_BILL' AND s.quantity <> 0

UNION ALL
SELECT 'REVOKED_KEY_SETTLED', k.tenant_id, ARRAY['key'], ARRAY[k.id], format('the key is revoked, and %s of its events are not settled', count(*))
FROM api_keys k
JOIN usage_events u ON u.tenant_id = k.tenant_id AND u.api_key_id = k.id AND u.settlement_id IS NULL
WHERE k.status = 'REVOKED' AND (k.tenant_id = @tenant_id OR @tenant_id = '00000000-0000-0000-0000-000000000000')
GROUP BY k.tenant_id, k.id

UNION ALL
SELECT 'SETTLEMENT_PLACED_IN_TIME', s.tenant_id, ARRAY['set'], ARRAY[s.id], format('it is pending since %s', s.created_at)
FROM these s WHERE s.outcome = 'PENDING' AND s.created_at < @pending_before::timestamptz

UNION ALL
SELECT 'WAIVE_HAS_EVIDENCE', i.tenant_id, ARRAY['inv', 'exm'], ARRAY[i.id, e.id], 'it is waived by the exemption of another customer'
FROM invoices i
JOIN billing_exemptions e ON e.tenant_id = i.tenant_id AND e.id = i.exemption_id
WHERE e.customer_id <> i.customer_id AND (i.tenant_id = @tenant_id OR @tenant_id = '00000000-0000-0000-0000-000000000000')

UNION ALL
SELECT 'WAIVE_HAS_EVIDENCE', s.tenant_id, ARRAY['set'], ARRAY[s.id], 'it was folded as waived, and names no exemption'
FROM these s WHERE s.outcome = 'FOLDED_WAIVED' AND s.exemption_id IS NULL

UNION ALL
SELECT 'CLOSED_MONTH_HAS_NO_OPEN_INVOICE', i.tenant_id, ARRAY['inv'], ARRAY[i.id], format('the month %s is closed, and its invoice is open', to_char(p.month, 'YYYY-MM'))
FROM invoices i
JOIN billing_periods p ON p.tenant_id = i.tenant_id AND p.customer_id = i.customer_id AND p.month = i.usage_month
WHERE i.status = 'OPEN' AND p.closed_at IS NOT NULL AND (i.tenant_id = @tenant_id OR @tenant_id = '00000000-0000-0000-0000-000000000000')

ORDER BY 1, 2, 4;
