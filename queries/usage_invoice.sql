-- name: FindMonthlyInvoice :one
SELECT * FROM invoices WHERE tenant_id = @tenant_id AND customer_id = @customer_id AND usage_month = @usage_month AND kind = 'USAGE';

-- name: LockInvoice :one
-- Whoever holds an invoice decides what becomes of it; NO KEY, so that its lines can refer to it. Of the
-- invoice itself the guards of what moves it are enough, and the lock saves deciding twice; nothing else
-- stands between two invoices that are each voided to be replaced by the other.
SELECT * FROM invoices WHERE tenant_id = @tenant_id AND id = @id FOR NO KEY UPDATE;

-- name: InsertUsageInvoice :one
-- The month's invoice, or one of its own for a residual. The unique index on the month decides
-- between two first folds: the loser is refused like any other, and reads everything again. Its number
-- comes last, by MoveInvoice.
INSERT INTO invoices (
    tenant_id, id, customer_id, kind, status, usage_month, currency, total_minor, rounding_adjustment,
    waived_by, exemption_id, operation_id, operation_fingerprint, created_by, created_at, updated_at
)
VALUES (
    @tenant_id, @id, @customer_id, @kind, @status, @usage_month, @currency, @total_minor, @rounding_adjustment,
    @waived_by, @exemption_id, @operation_id, @operation_fingerprint, @created_by, @created_at, @updated_at
)
RETURNING *;

-- name: FoldIntoInvoice :one
-- The guarded update of a fold: the statuses it may find, and the version it was decided on. No row
-- means that the invoice was moved since it was read: a refusal, and everything is read again.
UPDATE invoices
SET status = @to_status, total_minor = @total_minor, rounding_adjustment = @rounding_adjustment,
    waived_by = sqlc.narg('waived_by'), exemption_id = sqlc.narg('exemption_id'), waive_verified_at = NULL, updated_at = @next_version
WHERE tenant_id = @tenant_id AND id = @id
  AND status = ANY(sqlc.slice('allowed_statuses')) AND updated_at = @expected_updated_at
RETURNING *;

-- name: InsertSettlementLine :one
-- Once per settlement and round: nothing folds twice.
INSERT INTO invoice_lines (tenant_id, invoice_id, position, description, quantity, unit_price, exact_amount, settlement_id, settlement_round)
SELECT @tenant_id, @invoice_id, (
    SELECT coalesce(max(l.position), 0) + 1 FROM invoice_lines l WHERE l.tenant_id = @tenant_id AND l.invoice_id = @invoice_id
), @description, @quantity, @unit_price, @exact_amount, @settlement_id, @settlement_round
RETURNING *;

-- name: MoveInvoice :one
-- The guarded update of every other move. Where number_by names a series, the invoice gets its next number,
-- by the lock and the guard of AllocateInvoices, which freezes the parties of now: no row back may mean
-- "move the counter first", too. Nothing of its transaction comes after it but COMMIT.
--
-- The guard: the version that the move was decided on, beside LockInvoice, and alone for the look, which
-- decides without holding the invoice. The statuses are behind both, for a move that was not checked: one
-- that the domain does not know is not made.
WITH counter AS (
    SELECT c.tenant_id, c.series_id, c.period_start, c.next_number, c.last_issue_date,
           c.number_prefix, c.number_suffix, c.number_width
    FROM series_counters c
    WHERE c.tenant_id = @tenant_id AND c.series_id = sqlc.narg('number_by')::uuid AND c.document = 'INVOICE'
      AND CASE WHEN sqlc.narg('issue_date')::date IS NULL
               THEN @now::timestamptz < c.issue_date_ends
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
), taken AS (
    SELECT counter.series_id, counter.period_start, counter.next_number AS sequence, counter.last_issue_date AS issue_date,
           counter.number_prefix
               || lpad(counter.next_number::text, greatest(counter.number_width, length(counter.next_number::text)), '0')
               || counter.number_suffix AS number
    FROM counter
    UNION ALL
    SELECT NULL, NULL, NULL, NULL, NULL WHERE sqlc.narg('number_by')::uuid IS NULL
)
UPDATE invoices
SET status = @to_status, updated_at = @next_version,
    waived_by = sqlc.narg('waived_by'), waive_reason = sqlc.narg('waive_reason'), exemption_id = sqlc.narg('exemption_id'), waive_verified_at = NULL,
    paid_at = sqlc.narg('paid_at'), payment_reference = sqlc.narg('payment_reference'),
    voided_at = sqlc.narg('voided_at'), void_reason = sqlc.narg('void_reason'), replaced_by = sqlc.narg('replaced_by'),
    paid_minor = @paid_minor, credited_minor = @credited_minor, refund_due_minor = @refund_due_minor,
    series_id = coalesce(taken.series_id, invoices.series_id), period_start = coalesce(taken.period_start, invoices.period_start),
    sequence = coalesce(taken.sequence, invoices.sequence), number = coalesce(taken.number, invoices.number),
    issue_date = coalesce(taken.issue_date, invoices.issue_date),
    seller_revision = coalesce(seller_revision, (SELECT s.revision FROM sellers s WHERE s.tenant_id = @tenant_id AND taken.number IS NOT NULL)),
    buyer_revision = coalesce(buyer_revision, (
        SELECT c.revision FROM customers c
        WHERE c.tenant_id = @tenant_id AND c.id = invoices.customer_id AND taken.number IS NOT NULL))
FROM taken
WHERE invoices.tenant_id = @tenant_id AND invoices.id = @id
  AND invoices.status = ANY(sqlc.slice('allowed_statuses')) AND invoices.updated_at = @expected_updated_at
RETURNING invoices.*;

-- name: VerifyWaive :one
-- The look after the write has seen which exemption stands: that one is the evidence, even if the
-- one that was waived by has ended meanwhile. Guarded by the version that it saw.
UPDATE invoices
SET waive_verified_at = @waive_verified_at, exemption_id = @exemption_id, updated_at = @next_version
WHERE tenant_id = @tenant_id AND id = @id AND status = 'WAIVED' AND waived_by = 'EXEMPTION' AND updated_at = @expected_updated_at
RETURNING *;

-- name: ListLookedAtInvoices :many
-- A customer's invoices that an exemption may have to do with: a waive that was verified is past
-- that once its month is closed.
SELECT i.* FROM invoices i
JOIN billing_periods p ON p.tenant_id = i.tenant_id AND p.customer_id = i.customer_id AND p.month = i.usage_month
WHERE i.tenant_id = @tenant_id AND i.customer_id = @customer_id
  AND (i.status = 'OPEN' OR i.waived_by = 'EXEMPTION' AND (i.waive_verified_at IS NULL OR p.closed_at IS NULL))
ORDER BY i.id;

-- name: EveryInvoiceToLookAt :many
-- What the sweep looks at again, of all tenants: what a crash has left between a write and its look,
-- or between an exemption's grant or end and its look. Those are waives that nobody has verified,
-- open invoices of the exempt, and in open months waives whose exemption has ended.
SELECT i.* FROM invoices i
JOIN billing_periods p ON p.tenant_id = i.tenant_id AND p.customer_id = i.customer_id AND p.month = i.usage_month
LEFT JOIN billing_exemptions e ON e.tenant_id = i.tenant_id AND e.customer_id = i.customer_id AND e.ended_at IS NULL
WHERE i.id > @after_id AND (i.status = 'OPEN' OR i.waived_by = 'EXEMPTION')
  AND (i.waive_verified_at IS NULL AND i.waived_by = 'EXEMPTION'
    OR p.closed_at IS NULL AND (i.status = 'OPEN') = (e.id IS NOT NULL))
ORDER BY i.id
LIMIT @row_limit;

-- name: InsertInvoiceHistory :one
-- After the move in its transaction: the invoice's row is held, so the next position is free.
INSERT INTO invoice_history (
    tenant_id, id, invoice_id, position, event, from_status, to_status, detail, operation_id, operation_fingerprint, moved_by, moved_at
)
SELECT @tenant_id, @id, @invoice_id, (
    SELECT coalesce(max(h.position), 0) + 1 FROM invoice_history h WHERE h.tenant_id = @tenant_id AND h.invoice_id = @invoice_id
), @event, @from_status, @to_status, @detail, @operation_id, @operation_fingerprint, @moved_by, @moved_at
RETURNING *;

-- name: FindInvoiceMove :one
SELECT * FROM invoice_history WHERE tenant_id = @tenant_id AND operation_id = @operation_id;

-- name: ListInvoiceHistory :many
SELECT * FROM invoice_history WHERE tenant_id = @tenant_id AND invoice_id = ANY(sqlc.slice('invoice_ids'))
ORDER BY invoice_id, position;

-- name: FindSeriesByCode :one
SELECT * FROM invoice_series WHERE tenant_id = @tenant_id AND code = @code;

-- name: EveryInvoiceReference :one
SELECT invoices.tenant_id FROM invoices WHERE invoices.id = @id;
