-- +goose Up

-- Why: no more is credited than was invoiced. invoices_credited_within_total says so of what an invoice
-- says is credited; from here on it says so of its credit notes too, which could say something else.

-- Whether a credit note fits in what the others leave of its invoice. The invoice's row is held until the
-- transaction ends: of two notes that do not see each other the second waits, and sees the first. An invoice
-- that is not there is for the foreign key to refuse.
-- +goose StatementBegin
CREATE FUNCTION credit_note_fits(tenant uuid, invoice uuid, note uuid, amount bigint) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    total bigint;
BEGIN
    SELECT i.total_minor INTO total FROM public.invoices i WHERE i.tenant_id = tenant AND i.id = invoice FOR NO KEY UPDATE;
    -- A statement of its own: it sees what was committed while the row was waited for.
    RETURN total IS NULL OR total >= amount + (
        SELECT coalesce(sum(n.total_minor), 0) FROM public.invoices n
        WHERE n.tenant_id = tenant AND n.credits_invoice_id = invoice AND n.id <> note);
END
$$;
-- +goose StatementEnd

-- A check, and no trigger: nothing is to happen behind a statement's back, and this can only refuse. A check
-- that reads other rows is not looked at when those change, but no total of an invoice with notes does; and it
-- does not see what the same COPY brings, which the server never sends. NOT VALID, since it is about what is
-- written from now on, what is here already being for the doctor to look at; and since a dump then restores it
-- after the rows, which come in any order.
ALTER TABLE invoices
    DROP CONSTRAINT invoices_credited_within_total,
    ADD CONSTRAINT invoices_credited_within_total CHECK (
        credited_minor BETWEEN 0 AND total_minor
        AND CASE WHEN kind = 'CREDIT_NOTE' THEN credit_note_fits(tenant_id, credits_invoice_id, id, total_minor) ELSE true END) NOT VALID;
