-- name: InsertDraft :one
-- A draft with its lines. It has no number, and leaves no hole if it never gets one.
WITH lines AS (
    INSERT INTO invoice_lines (
        tenant_id, invoice_id, position, description, quantity, unit_price, exact_amount, tax_rate, tax_treatment, tax_minor
    )
    SELECT @tenant_id, @id, line.ord, line.description, line.quantity, line.unit_price::numeric, line.quantity::numeric * line.unit_price::numeric,
           nullif(line.tax_rate, '')::numeric, nullif(line.tax_treatment, ''), line.tax_minor
    FROM ROWS FROM (
        unnest(@line_descriptions::text[]), unnest(@line_quantities::bigint[]), unnest(@line_unit_amounts::bigint[]),
        unnest(@line_tax_rates::text[]), unnest(@line_tax_treatments::text[]), unnest(@line_taxes_minor::bigint[])
    ) WITH ORDINALITY AS line (description, quantity, unit_price, tax_rate, tax_treatment, tax_minor, ord)
)
INSERT INTO invoices (
    tenant_id, id, customer_id, kind, status, currency, total_minor, tax_minor, rounding_adjustment,
    operation_id, operation_fingerprint, created_by, created_at, updated_at
)
VALUES (
    @tenant_id, @id, @customer_id, 'DIRECT', 'DRAFT', @currency, @total_minor, @tax_minor, 0,
    @operation_id, @operation_fingerprint, @created_by, @created_at, @updated_at
)
RETURNING *;

-- name: NextInvoiceLine :one
-- Where an invoice's next lines begin, while it is held. The lines' primary key is behind that: of two edits
-- that begin at one line the second is refused.
SELECT (coalesce(max(position), 0) + 1)::integer AS position FROM invoice_lines WHERE tenant_id = @tenant_id AND invoice_id = @invoice_id;

-- name: ReplaceDraftLines :one
-- The lines that an edit replaces stay before the new ones: what a draft has been is not lost. The
-- guard is the draft's status and version; either is enough against what moves a draft away, and so is
-- LockInvoice before it.
WITH lines AS (
    INSERT INTO invoice_lines (
        tenant_id, invoice_id, position, description, quantity, unit_price, exact_amount, tax_rate, tax_treatment, tax_minor
    )
    SELECT @tenant_id, @id, line.position, line.description, line.quantity,
           line.unit_price::numeric, line.quantity::numeric * line.unit_price::numeric,
           nullif(line.tax_rate, '')::numeric, nullif(line.tax_treatment, ''), line.tax_minor
    FROM ROWS FROM (
        unnest(@line_positions::integer[]), unnest(@line_descriptions::text[]), unnest(@line_quantities::bigint[]), unnest(@line_unit_amounts::bigint[]),
        unnest(@line_tax_rates::text[]), unnest(@line_tax_treatments::text[]), unnest(@line_taxes_minor::bigint[])
    ) AS line (position, description, quantity, unit_price, tax_rate, tax_treatment, tax_minor)
)
UPDATE invoices
SET lines_from = @lines_from, total_minor = @total_minor, tax_minor = @tax_minor, updated_at = @next_version
WHERE invoices.tenant_id = @tenant_id AND invoices.id = @id AND invoices.status = 'DRAFT' AND invoices.updated_at = @expected_updated_at
RETURNING *;

-- name: InsertInvoicePayment :one
-- Each reference once for an invoice: one transfer is not counted twice under two keys.
INSERT INTO invoice_payments (
    tenant_id, id, invoice_id, amount_minor, currency, provider, reference, operation_id, operation_fingerprint, recorded_by, recorded_at
)
VALUES (
    @tenant_id, @id, @invoice_id, @amount_minor, @currency, @provider, @reference, @operation_id, @operation_fingerprint, @recorded_by, @recorded_at
)
RETURNING *;

-- name: ListInvoicePayments :many
SELECT * FROM invoice_payments
WHERE tenant_id = @tenant_id AND invoice_id = ANY(sqlc.slice('invoice_ids'))
ORDER BY invoice_id, id;

-- name: ListPaymentsByReference :many
SELECT * FROM invoice_payments
WHERE tenant_id = @tenant_id AND reference = @reference AND (invoice_id = @invoice_id OR provider = @provider)
ORDER BY id;

-- name: InsertCreditNote :one
-- The credit note with its lines, under the next number of its own series, by the lock and the guard of
-- AllocateInvoices; the parties are those of now. No row back means "move the counter first". Its day is
-- decided by a moment of its own, which is now, or when its invoice's day begins.
WITH counter AS (
    SELECT c.tenant_id, c.series_id, c.period_start, c.next_number, c.last_issue_date,
           c.number_prefix, c.number_suffix, c.number_width
    FROM series_counters c
    WHERE c.tenant_id = @tenant_id AND c.series_id = @series_id AND c.document = 'CREDIT_NOTE'
      AND CASE WHEN sqlc.narg('issue_date')::date IS NULL
               THEN @dated_by::timestamptz < c.issue_date_ends
               ELSE c.last_issue_date = sqlc.narg('issue_date')::date END
      AND c.next_number <= c.max_number
      AND NOT EXISTS (
          SELECT FROM series_entries e
          WHERE e.tenant_id = c.tenant_id AND e.series_id = c.series_id AND e.period_start = c.period_start AND e.last_number >= c.next_number)
    FOR UPDATE
), advanced AS (
    UPDATE series_counters c
    SET next_number = counter.next_number + 1
    FROM counter
    WHERE c.tenant_id = counter.tenant_id AND c.series_id = counter.series_id
    RETURNING c.series_id
), lines AS (
    INSERT INTO invoice_lines (
        tenant_id, invoice_id, position, description, quantity, unit_price, exact_amount, tax_rate, tax_treatment, tax_minor, credits_line
    )
    SELECT @tenant_id, @id, line.ord, line.description, line.quantity, line.unit_price::numeric, line.quantity::numeric * line.unit_price::numeric,
           nullif(line.tax_rate, '')::numeric, nullif(line.tax_treatment, ''), line.tax_minor, line.credits_line
    FROM counter, ROWS FROM (
        unnest(@line_descriptions::text[]), unnest(@line_quantities::bigint[]), unnest(@line_unit_amounts::text[]),
        unnest(@line_tax_rates::text[]), unnest(@line_tax_treatments::text[]), unnest(@line_taxes_minor::bigint[]), unnest(@line_credits::integer[])
    ) WITH ORDINALITY AS line (description, quantity, unit_price, tax_rate, tax_treatment, tax_minor, credits_line, ord)
)
INSERT INTO invoices (
    tenant_id, id, customer_id, kind, status, currency, total_minor, tax_minor, refund_due_minor, rounding_adjustment, credits_invoice_id, credit_reason,
    series_id, period_start, sequence, number, issue_date, seller_revision, buyer_revision,
    operation_id, operation_fingerprint, created_by, created_at, updated_at
)
SELECT @tenant_id, @id, @customer_id, 'CREDIT_NOTE', 'ISSUED', @currency, @total_minor, @tax_minor, @refund_due_minor, 0, @credits_invoice_id, @credit_reason,
       counter.series_id, counter.period_start, counter.next_number,
       counter.number_prefix
           || lpad(counter.next_number::text, greatest(counter.number_width, length(counter.next_number::text)), '0')
           || counter.number_suffix,
       counter.last_issue_date,
       (SELECT s.revision FROM sellers s WHERE s.tenant_id = @tenant_id),
       (SELECT c.revision FROM customers c WHERE c.tenant_id = @tenant_id AND c.id = @customer_id),
       @operation_id, @operation_fingerprint, @created_by, @now::timestamptz, @now::timestamptz
FROM counter
RETURNING *;

-- name: ListCreditNotes :many
SELECT * FROM invoices
WHERE tenant_id = @tenant_id AND credits_invoice_id = ANY(@invoice_ids::uuid[])
ORDER BY credits_invoice_id, id;

-- name: SumCreditedLines :many
-- What the credit notes of an invoice have taken back of each of its lines, while it is held: with
-- its tax, and of its tax.
SELECT l.credits_line::integer AS line,
       sum(l.exact_amount + CASE WHEN l.tax_treatment = 'EXCLUSIVE' THEN l.tax_minor ELSE 0 END)::bigint AS gross_minor,
       sum(l.tax_minor)::bigint AS tax_minor
FROM invoice_lines l
JOIN invoices n ON n.tenant_id = l.tenant_id AND n.id = l.invoice_id
WHERE l.tenant_id = @tenant_id AND n.credits_invoice_id = @invoice_id AND l.credits_line IS NOT NULL
GROUP BY l.credits_line
ORDER BY l.credits_line;
