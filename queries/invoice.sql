-- name: AllocateInvoices :many
-- Numbers for a batch of invoices: one lock, consecutive numbers in the order of the ids, one
-- statement that is a transaction of its own.
--
-- The lock: the first part takes the counter's row FOR UPDATE, so that two statements never read
-- the same number, and everything below reads the number from that locked row (never from the
-- UPDATE's output, and never under a snapshot older than the lock).
--
-- The guard: the counter must number invoices, its day must be the right one (the requested day,
-- or, where none was, a day not over yet), and every number of the batch must fit its legal length.
-- A day that is not over is in the counter's period. It is checked again on the row that was waited
-- for. No row back means "move the counter first", or that there is no such series, or no number.
-- MoveInvoice and InsertCreditNote number by the same lock and guard.
--
-- Seller and buyer are frozen: their revisions of now. A customer that is not there has none; its
-- foreign key refuses it.
--
-- What comes back is what was decided here; the rest of a row is as it was sent.
WITH counter AS (
    SELECT c.tenant_id, c.series_id, c.period_start, c.next_number, c.last_issue_date,
           c.number_prefix, c.number_suffix, c.number_width,
           (SELECT s.revision FROM sellers s WHERE s.tenant_id = c.tenant_id) AS seller_revision
    FROM series_counters c
    WHERE c.tenant_id = @tenant_id AND c.series_id = @series_id AND c.document = 'INVOICE'
      AND CASE WHEN sqlc.narg('issue_date')::date IS NULL
               THEN @now::timestamptz < c.issue_date_ends
               ELSE c.last_issue_date = sqlc.narg('issue_date')::date END
      AND c.next_number <= c.max_number - cardinality(@ids::uuid[]) + 1
      -- Numbers that were imported or explained stand in entries: a counter behind them would give them out again.
      AND NOT EXISTS (
          SELECT FROM series_entries e
          WHERE e.tenant_id = c.tenant_id AND e.series_id = c.series_id AND e.period_start = c.period_start AND e.last_number >= c.next_number)
    FOR UPDATE
), advanced AS (
    UPDATE series_counters c
    SET next_number = counter.next_number + cardinality(@ids::uuid[])
    FROM counter
    WHERE c.tenant_id = counter.tenant_id AND c.series_id = counter.series_id
    RETURNING c.series_id
), lines AS (
    INSERT INTO invoice_lines (
        tenant_id, invoice_id, position, description, quantity, unit_price, exact_amount, tax_rate, tax_treatment, tax_minor
    )
    SELECT counter.tenant_id, line.invoice_id, line.position, line.description, line.quantity,
           line.unit_price::numeric, line.quantity::numeric * line.unit_price::numeric,
           nullif(line.tax_rate, '')::numeric, nullif(line.tax_treatment, ''), coalesce(line.tax_minor, 0)
    FROM counter, ROWS FROM (
        unnest(@line_invoice_ids::uuid[]), unnest(@line_positions::integer[]), unnest(@line_descriptions::text[]),
        unnest(@line_quantities::bigint[]), unnest(@line_unit_amounts::bigint[]),
        unnest(@line_tax_rates::text[]), unnest(@line_tax_treatments::text[]), unnest(@line_taxes_minor::bigint[])
    ) AS line (invoice_id, position, description, quantity, unit_price, tax_rate, tax_treatment, tax_minor)
    RETURNING invoice_id
)
INSERT INTO invoices (
    tenant_id, id, customer_id, kind, status, series_id, period_start, sequence, number, issue_date,
    currency, total_minor, tax_minor, rounding_adjustment, seller_revision, buyer_revision,
    operation_id, operation_fingerprint, created_by, created_at, updated_at
)
SELECT counter.tenant_id, invoice.id, invoice.customer_id, 'DIRECT', 'PENDING',
       counter.series_id, counter.period_start, counter.next_number + invoice.ord - 1,
       -- Padding never truncates, as lpad alone would.
       counter.number_prefix
           || lpad((counter.next_number + invoice.ord - 1)::text,
                   greatest(counter.number_width, length((counter.next_number + invoice.ord - 1)::text)), '0')
           || counter.number_suffix,
       counter.last_issue_date, invoice.currency, invoice.total_minor, coalesce(invoice.tax_minor, 0), 0,
       counter.seller_revision,
       coalesce((SELECT c.revision FROM customers c WHERE c.tenant_id = counter.tenant_id AND c.id = invoice.customer_id), 0),
       invoice.operation_id, invoice.operation_fingerprint, invoice.created_by, @now::timestamptz, @now::timestamptz
FROM counter, ROWS FROM (
    unnest(@ids::uuid[]), unnest(@customer_ids::uuid[]), unnest(@currencies::text[]), unnest(@totals_minor::bigint[]),
    unnest(@operation_ids::uuid[]), unnest(@operation_fingerprints::bytea[]), unnest(@created_bys::text[]),
    unnest(@taxes_minor::bigint[])
) WITH ORDINALITY AS invoice (id, customer_id, currency, total_minor, operation_id, operation_fingerprint, created_by, tax_minor, ord)
RETURNING id, period_start, sequence, number, issue_date, seller_revision, buyer_revision;

-- name: FindInvoiceOfOperation :one
SELECT * FROM invoices WHERE tenant_id = @tenant_id AND operation_id = @operation_id;

-- name: FindInvoicesOfOperations :many
SELECT * FROM invoices WHERE tenant_id = @tenant_id AND operation_id = ANY(sqlc.slice('operation_ids'));

-- name: GetInvoices :many
SELECT * FROM invoices WHERE tenant_id = @tenant_id AND id = ANY(sqlc.slice('ids'));

-- name: ListInvoiceLines :many
-- The lines that stand: those that an edit of a draft has replaced come before them, and stay.
SELECT l.* FROM invoice_lines l
JOIN invoices i ON i.tenant_id = l.tenant_id AND i.id = l.invoice_id
WHERE l.tenant_id = @tenant_id AND l.invoice_id = ANY(sqlc.slice('invoice_ids')) AND l.position >= i.lines_from
ORDER BY l.invoice_id, l.position;

-- name: ListInvoices :many
-- In order of creation. Each filter has a query of its own, and an index in the order of its pages: one
-- query for all would have one plan for all, which reads past every row that its filter leaves out. Deleted drafts are left out: they are few.
SELECT * FROM invoices
WHERE tenant_id = @tenant_id AND id > @after_id AND id < @before_id
  AND status <> 'DELETED' AND (status <> 'DRAFT' OR @with_drafts::boolean)
ORDER BY id
LIMIT @row_limit;

-- name: ListInvoicesBackward :many
SELECT * FROM invoices
WHERE tenant_id = @tenant_id AND id > @after_id AND id < @before_id
  AND status <> 'DELETED' AND (status <> 'DRAFT' OR @with_drafts::boolean)
ORDER BY id DESC
LIMIT @row_limit;

-- name: ListInvoicesOfStatus :many
-- The filter is part of the range and of the order, so that only its own index will do: beside an
-- equality the primary key looks as good to a plan that knows no arguments, and reads past the others.
SELECT * FROM invoices
WHERE tenant_id = @tenant_id AND (status, tenant_id, id) > (@status::text, @tenant_id, @after_id::uuid)
  AND (status, tenant_id, id) < (@status::text, @tenant_id, @before_id::uuid)
ORDER BY status, id
LIMIT @row_limit;

-- name: ListInvoicesOfStatusBackward :many
SELECT * FROM invoices
WHERE tenant_id = @tenant_id AND (status, tenant_id, id) > (@status::text, @tenant_id, @after_id::uuid)
  AND (status, tenant_id, id) < (@status::text, @tenant_id, @before_id::uuid)
ORDER BY status DESC, id DESC
LIMIT @row_limit;

-- name: ListInvoicesOfCustomerOfStatus :many
-- OFFSET 0 keeps the status from the plan, which is for any of them, as it is for any customer.
SELECT invoices.* FROM customers parent
CROSS JOIN (SELECT @status::text AS status OFFSET 0) AS wanted
CROSS JOIN LATERAL (
    SELECT * FROM invoices o
    WHERE o.tenant_id = @tenant_id AND o.customer_id = parent.id
      AND (o.status, o.tenant_id, o.id) > (wanted.status, @tenant_id, @after_id::uuid)
      AND (o.status, o.tenant_id, o.id) < (wanted.status, @tenant_id, @before_id::uuid)
    ORDER BY o.status, o.id
    LIMIT @row_limit
) AS invoices
WHERE parent.tenant_id = @tenant_id AND parent.id = @customer_id
ORDER BY invoices.id;

-- name: ListInvoicesOfCustomerOfStatusBackward :many
SELECT invoices.* FROM customers parent
CROSS JOIN (SELECT @status::text AS status OFFSET 0) AS wanted
CROSS JOIN LATERAL (
    SELECT * FROM invoices o
    WHERE o.tenant_id = @tenant_id AND o.customer_id = parent.id
      AND (o.status, o.tenant_id, o.id) > (wanted.status, @tenant_id, @after_id::uuid)
      AND (o.status, o.tenant_id, o.id) < (wanted.status, @tenant_id, @before_id::uuid)
    ORDER BY o.status DESC, o.id DESC
    LIMIT @row_limit
) AS invoices
WHERE parent.tenant_id = @tenant_id AND parent.id = @customer_id
ORDER BY invoices.id DESC;

-- name: ListInvoicesOfCustomers :many
-- A page for each of the customers, in one statement. Beside their row a customer's invoices are planned
-- for any customer: for one that has most of them the primary key looks as good, and reads past all the
-- others' before its first. The rows bear the name of their table, so that they are invoices to sqlc too.
SELECT invoices.* FROM customers parent
CROSS JOIN LATERAL (
    SELECT * FROM invoices o
    WHERE o.tenant_id = @tenant_id AND o.customer_id = parent.id
      AND o.id > @after_id AND o.id < @before_id
      AND o.status <> 'DELETED' AND (o.status <> 'DRAFT' OR @with_drafts::boolean)
    ORDER BY o.id
    LIMIT @row_limit
) AS invoices
WHERE parent.tenant_id = @tenant_id AND parent.id = ANY(sqlc.slice('customer_ids'))
ORDER BY invoices.customer_id, invoices.id;

-- name: ListInvoicesOfCustomersBackward :many
SELECT invoices.* FROM customers parent
CROSS JOIN LATERAL (
    SELECT * FROM invoices o
    WHERE o.tenant_id = @tenant_id AND o.customer_id = parent.id
      AND o.id > @after_id AND o.id < @before_id
      AND o.status <> 'DELETED' AND (o.status <> 'DRAFT' OR @with_drafts::boolean)
    ORDER BY o.id DESC
    LIMIT @row_limit
) AS invoices
WHERE parent.tenant_id = @tenant_id AND parent.id = ANY(sqlc.slice('customer_ids'))
ORDER BY invoices.customer_id, invoices.id DESC;

-- name: ListInvoicesOfSeries :many
-- A page for each of the series, in order of their numbers, as numbers: 9 before 10, padded or not.
SELECT invoices.* FROM invoice_series parent
CROSS JOIN LATERAL (
    SELECT * FROM invoices i
    WHERE i.tenant_id = @tenant_id AND i.series_id = parent.id
      AND (i.period_start, i.sequence) > (@after_period::date, @after_sequence::bigint)
      AND (i.period_start, i.sequence) < (@before_period::date, @before_sequence::bigint)
    ORDER BY i.period_start, i.sequence
    LIMIT @row_limit
) AS invoices
WHERE parent.tenant_id = @tenant_id AND parent.id = ANY(sqlc.slice('series_ids'))
ORDER BY invoices.series_id, invoices.period_start, invoices.sequence;

-- name: ListInvoicesOfSeriesBackward :many
SELECT invoices.* FROM invoice_series parent
CROSS JOIN LATERAL (
    SELECT * FROM invoices i
    WHERE i.tenant_id = @tenant_id AND i.series_id = parent.id
      AND (i.period_start, i.sequence) > (@after_period::date, @after_sequence::bigint)
      AND (i.period_start, i.sequence) < (@before_period::date, @before_sequence::bigint)
    ORDER BY i.period_start DESC, i.sequence DESC
    LIMIT @row_limit
) AS invoices
WHERE parent.tenant_id = @tenant_id AND parent.id = ANY(sqlc.slice('series_ids'))
ORDER BY invoices.series_id, invoices.period_start DESC, invoices.sequence DESC;
