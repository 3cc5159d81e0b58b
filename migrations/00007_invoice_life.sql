-- +goose Up

-- Why: an invoice's whole life. It may begin as a draft; when it is numbered, seller and buyer are
-- frozen on it; its lines carry tax; it is paid in parts and credited, never for more than it asked.

-- The seller is the tenant as its invoices show it. What it was at any moment stays: an invoice
-- refers to the revision that was true when it was numbered.
CREATE TABLE sellers (
    tenant_id  uuid        NOT NULL,
    name       text        NOT NULL,
    email      text,
    address    jsonb,
    tax_ids    jsonb       NOT NULL,
    revision   integer     NOT NULL,
    updated_at timestamptz NOT NULL,
    CONSTRAINT sellers_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES ops.tenants (id),
    CONSTRAINT sellers_name_length CHECK (char_length(name) BETWEEN 1 AND 200),
    CONSTRAINT sellers_email_length CHECK (char_length(email) BETWEEN 3 AND 254),
    CONSTRAINT sellers_address_object CHECK (jsonb_typeof(address) = 'object'),
    CONSTRAINT sellers_tax_ids_list CHECK (jsonb_typeof(tax_ids) = 'array')
);
ALTER TABLE sellers ADD CONSTRAINT sellers_pkey PRIMARY KEY (tenant_id);
GRANT SELECT, INSERT ON sellers TO countersign_runtime;
GRANT UPDATE (name, email, address, tax_ids, revision, updated_at) ON sellers TO countersign_runtime;

CREATE TABLE seller_revisions (
    tenant_id             uuid        NOT NULL,
    revision              integer     NOT NULL,
    id                    uuid        NOT NULL,
    name                  text        NOT NULL,
    email                 text,
    address               jsonb,
    tax_ids               jsonb       NOT NULL,
    operation_id          uuid        NOT NULL,
    operation_fingerprint bytea       NOT NULL,
    made_by               text        NOT NULL,
    made_at               timestamptz NOT NULL,
    CONSTRAINT seller_revisions_operation_key UNIQUE (tenant_id, operation_id),
    CONSTRAINT seller_revisions_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES ops.tenants (id),
    CONSTRAINT seller_revisions_revision_positive CHECK (revision >= 1)
);
ALTER TABLE seller_revisions ADD CONSTRAINT seller_revisions_pkey PRIMARY KEY (tenant_id, revision);
GRANT SELECT, INSERT ON seller_revisions TO countersign_runtime;

-- A buyer is a customer, likewise. Its first revision is made with it, by the same operation.
ALTER TABLE customers
    ADD COLUMN address jsonb,
    ADD COLUMN tax_ids jsonb NOT NULL DEFAULT '[]',
    ADD COLUMN revision integer NOT NULL DEFAULT 1,
    ADD CONSTRAINT customers_address_object CHECK (jsonb_typeof(address) = 'object'),
    ADD CONSTRAINT customers_tax_ids_list CHECK (jsonb_typeof(tax_ids) = 'array');
GRANT UPDATE (name, email, address, tax_ids, revision, updated_at) ON customers TO countersign_runtime;

CREATE TABLE customer_revisions (
    tenant_id             uuid        NOT NULL,
    customer_id           uuid        NOT NULL,
    revision              integer     NOT NULL,
    id                    uuid        NOT NULL,
    name                  text        NOT NULL,
    email                 text,
    address               jsonb,
    tax_ids               jsonb       NOT NULL,
    operation_id          uuid        NOT NULL,
    operation_fingerprint bytea       NOT NULL,
    made_by               text        NOT NULL,
    made_at               timestamptz NOT NULL,
    CONSTRAINT customer_revisions_operation_key UNIQUE (tenant_id, operation_id),
    CONSTRAINT customer_revisions_customer_fkey FOREIGN KEY (tenant_id, customer_id) REFERENCES customers (tenant_id, id),
    CONSTRAINT customer_revisions_revision_positive CHECK (revision >= 1)
);
ALTER TABLE customer_revisions ADD CONSTRAINT customer_revisions_pkey PRIMARY KEY (tenant_id, customer_id, revision);
GRANT SELECT, INSERT ON customer_revisions TO countersign_runtime;

-- What is here already: each tenant sells under its name, each customer buys as it stands.
INSERT INTO sellers (tenant_id, name, tax_ids, revision, updated_at)
SELECT t.id, t.name, '[]', 1, t.created_at FROM ops.tenants t;
INSERT INTO seller_revisions (tenant_id, revision, id, name, tax_ids, operation_id, operation_fingerprint, made_by, made_at)
SELECT t.id, 1, t.id, t.name, '[]', t.id, '', 'system', t.created_at FROM ops.tenants t;
INSERT INTO customer_revisions (tenant_id, customer_id, revision, id, name, email, tax_ids, operation_id, operation_fingerprint, made_by, made_at)
SELECT c.tenant_id, c.id, 1, c.id, c.name, c.email, '[]', c.operation_id, c.operation_fingerprint, c.created_by, c.created_at FROM customers c;

ALTER TABLE invoices
    ADD COLUMN seller_revision integer,
    ADD COLUMN buyer_revision integer,
    ADD COLUMN tax_minor bigint NOT NULL DEFAULT 0,
    ADD COLUMN lines_from integer NOT NULL DEFAULT 1,
    ADD COLUMN paid_minor bigint NOT NULL DEFAULT 0,
    ADD COLUMN credited_minor bigint NOT NULL DEFAULT 0,
    ADD COLUMN refund_due_minor bigint NOT NULL DEFAULT 0,
    ADD COLUMN credits_invoice_id uuid,
    ADD COLUMN credit_reason text,
    ADD COLUMN replaced_by uuid,
    DROP CONSTRAINT invoices_kind_known,
    DROP CONSTRAINT invoices_status_known,
    DROP CONSTRAINT invoices_final_numbered,
    DROP CONSTRAINT invoices_usage_has_month,
    DROP CONSTRAINT invoices_paid_has_reference;
UPDATE invoices SET seller_revision = 1, buyer_revision = 1 WHERE number IS NOT NULL;
UPDATE invoices SET paid_minor = total_minor WHERE status = 'PAID';
ALTER TABLE invoices
    ADD CONSTRAINT invoices_kind_known CHECK (kind IN ('DIRECT', 'USAGE', 'RESIDUAL', 'CREDIT_NOTE')),
    ADD CONSTRAINT invoices_status_known CHECK (status IN ('DRAFT', 'DELETED', 'OPEN', 'PENDING', 'PAID', 'WAIVED', 'VOID', 'ISSUED')),
    ADD CONSTRAINT invoices_final_numbered CHECK (status NOT IN ('PENDING', 'PAID', 'ISSUED') OR number IS NOT NULL),
    ADD CONSTRAINT invoices_usage_has_month CHECK ((kind IN ('USAGE', 'RESIDUAL')) = (usage_month IS NOT NULL)),
    -- A draft that is deleted stays without a number, and so leaves no hole.
    ADD CONSTRAINT invoices_draft_not_numbered CHECK (status NOT IN ('DRAFT', 'DELETED') OR number IS NULL AND kind = 'DIRECT'),
    -- What has a number has the parties of the moment it was given.
    ADD CONSTRAINT invoices_parties_frozen CHECK (num_nonnulls(number, seller_revision, buyer_revision) IN (0, 3)),
    ADD CONSTRAINT invoices_seller_fkey FOREIGN KEY (tenant_id, seller_revision) REFERENCES seller_revisions (tenant_id, revision),
    ADD CONSTRAINT invoices_buyer_fkey FOREIGN KEY (tenant_id, customer_id, buyer_revision) REFERENCES customer_revisions (tenant_id, customer_id, revision),
    ADD CONSTRAINT invoices_lines_from_positive CHECK (lines_from >= 1),
    ADD CONSTRAINT invoices_reference_is_paid CHECK (payment_reference IS NULL OR status = 'PAID'),
    -- Never more than was asked is paid, and never more than was invoiced is credited.
    ADD CONSTRAINT invoices_paid_within_total CHECK (paid_minor BETWEEN 0 AND total_minor),
    ADD CONSTRAINT invoices_credited_within_total CHECK (credited_minor BETWEEN 0 AND total_minor),
    ADD CONSTRAINT invoices_refund_due_within_credit CHECK (
        refund_due_minor BETWEEN 0 AND CASE WHEN kind = 'CREDIT_NOTE' THEN total_minor ELSE credited_minor END),
    -- Payments and credits, less what of the credits is to be given back, never exceed the total, and
    -- are exactly it once the invoice is settled. (Written so that no sum leaves 64 bits.)
    ADD CONSTRAINT invoices_settled_exactly CHECK (kind = 'CREDIT_NOTE' OR CASE WHEN status = 'PAID'
        THEN paid_minor - refund_due_minor = total_minor - credited_minor
        ELSE paid_minor - refund_due_minor <= total_minor - credited_minor END),
    ADD CONSTRAINT invoices_settled_is_final CHECK (status IN ('PENDING', 'PAID', 'WAIVED') OR paid_minor = 0 AND credited_minor = 0),
    ADD CONSTRAINT invoices_credit_note_issued CHECK ((kind = 'CREDIT_NOTE') = (status = 'ISSUED')),
    ADD CONSTRAINT invoices_credit_note_whole CHECK (num_nonnulls(credits_invoice_id, credit_reason) = CASE WHEN kind = 'CREDIT_NOTE' THEN 2 ELSE 0 END),
    ADD CONSTRAINT invoices_credits_fkey FOREIGN KEY (tenant_id, credits_invoice_id) REFERENCES invoices (tenant_id, id),
    ADD CONSTRAINT invoices_replaced_is_void CHECK (replaced_by IS NULL OR status = 'VOID' AND replaced_by <> id),
    ADD CONSTRAINT invoices_replaced_by_fkey FOREIGN KEY (tenant_id, replaced_by) REFERENCES invoices (tenant_id, id);
CREATE INDEX invoices_credits ON invoices (tenant_id, credits_invoice_id) WHERE credits_invoice_id IS NOT NULL;
GRANT UPDATE (seller_revision, buyer_revision, tax_minor, lines_from, paid_minor, credited_minor, refund_due_minor, replaced_by)
    ON invoices TO countersign_runtime;

-- A line's tax: on top of its amount, or within it. The one declared rounding is of the tax, per
-- line, half to even; the check says that it is at most half a minor unit off. A line of a credit
-- note is a share of the line that it credits, whose tax was rounded before.
ALTER TABLE invoice_lines
    ADD COLUMN tax_rate numeric,
    ADD COLUMN tax_treatment text,
    ADD COLUMN tax_minor bigint NOT NULL DEFAULT 0,
    ADD COLUMN credits_line integer,
    ADD CONSTRAINT invoice_lines_tax_whole CHECK ((tax_rate IS NULL) = (tax_treatment IS NULL) AND (tax_rate IS NOT NULL OR tax_minor = 0)),
    ADD CONSTRAINT invoice_lines_tax_rate_percent CHECK (tax_rate BETWEEN 0 AND 100),
    ADD CONSTRAINT invoice_lines_tax_treatment_known CHECK (tax_treatment IN ('EXCLUSIVE', 'INCLUSIVE')),
    ADD CONSTRAINT invoice_lines_tax_rounded CHECK (tax_rate IS NULL OR
        2 * abs(tax_minor * (CASE WHEN tax_treatment = 'INCLUSIVE' THEN 100 + tax_rate ELSE 100 END) - exact_amount * tax_rate)
        <= (CASE WHEN tax_treatment = 'INCLUSIVE' THEN 100 + tax_rate ELSE 100 END) * (CASE WHEN credits_line IS NULL THEN 1 ELSE 4 END));

-- Each payment of an invoice. Only grows. The same reference pays an invoice once, whoever tells of
-- it and under whatever key; a provider's payment pays one invoice, while one transfer from a bank
-- may pay several.
CREATE TABLE invoice_payments (
    tenant_id             uuid        NOT NULL,
    id                    uuid        NOT NULL,
    invoice_id            uuid        NOT NULL,
    amount_minor          bigint      NOT NULL,
    currency              text        NOT NULL,
    provider              text,
    reference             text        NOT NULL,
    operation_id          uuid        NOT NULL,
    operation_fingerprint bytea       NOT NULL,
    recorded_by           text        NOT NULL,
    recorded_at           timestamptz NOT NULL,
    CONSTRAINT invoice_payments_operation_key UNIQUE (tenant_id, operation_id),
    CONSTRAINT invoice_payments_reference_key UNIQUE (tenant_id, invoice_id, reference),
    CONSTRAINT invoice_payments_invoice_fkey FOREIGN KEY (tenant_id, invoice_id) REFERENCES invoices (tenant_id, id),
    CONSTRAINT invoice_payments_amount_not_negative CHECK (amount_minor >= 0),
    CONSTRAINT invoice_payments_currency_syntax CHECK (currency ~ '^[A-Z]{3}$')
);
CREATE UNIQUE INDEX invoice_payments_provider_reference_key ON invoice_payments (tenant_id, provider, reference) WHERE provider IS NOT NULL;
ALTER TABLE invoice_payments ADD CONSTRAINT invoice_payments_pkey PRIMARY KEY (tenant_id, id);
GRANT SELECT, INSERT ON invoice_payments TO countersign_runtime;
INSERT INTO invoice_payments (tenant_id, id, invoice_id, amount_minor, currency, reference, operation_id, operation_fingerprint, recorded_by, recorded_at)
SELECT i.tenant_id, h.id, i.id, i.total_minor, i.currency, i.payment_reference, h.operation_id, h.operation_fingerprint, h.moved_by, i.paid_at
FROM invoices i
JOIN invoice_history h ON h.tenant_id = i.tenant_id AND h.invoice_id = i.id AND h.event = 'PAID'
WHERE i.status = 'PAID';

ALTER TABLE invoice_history ADD CONSTRAINT invoice_history_event_known CHECK (
    event IN ('EDITED', 'FINALISED', 'PART_PAID', 'PAID', 'CREDITED', 'WAIVED', 'REINSTATED', 'VOIDED', 'DELETED'));
