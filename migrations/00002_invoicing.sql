-- +goose Up

-- Why: numbers. A series numbers a tenant's invoices without holes; its counter is a row of its
-- own that nothing references, so that locking it FOR UPDATE holds up nobody but the next number.

CREATE TABLE invoice_series (
    tenant_id             uuid        NOT NULL,
    id                    uuid        NOT NULL,
    code                  text        NOT NULL,
    document              text        NOT NULL,
    format                text        NOT NULL,
    number_pattern        text        NOT NULL,
    time_zone             text        NOT NULL,
    fiscal_year_start     integer     NOT NULL,
    operation_id          uuid        NOT NULL,
    operation_fingerprint bytea       NOT NULL,
    created_by            text        NOT NULL,
    created_at            timestamptz NOT NULL,
    CONSTRAINT invoice_series_operation_key UNIQUE (tenant_id, operation_id),
    CONSTRAINT invoice_series_code_key UNIQUE (tenant_id, code),
    -- Two series that print the same numbers would run into invoices_number_key at their first use.
    CONSTRAINT invoice_series_number_pattern_key UNIQUE (tenant_id, number_pattern),
    CONSTRAINT invoice_series_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES ops.tenants (id),
    CONSTRAINT invoice_series_code_length CHECK (char_length(code) BETWEEN 1 AND 20),
    CONSTRAINT invoice_series_document_known CHECK (document IN ('INVOICE', 'CREDIT_NOTE')),
    CONSTRAINT invoice_series_fiscal_year_start_month CHECK (fiscal_year_start BETWEEN 1 AND 12)
);
ALTER TABLE invoice_series ADD CONSTRAINT invoice_series_pkey PRIMARY KEY (tenant_id, id);
GRANT SELECT, INSERT ON invoice_series TO countersign_runtime;

-- The counter holds what the next number needs, so that taking it is one statement: the number,
-- the last issue date and the moment that day ends in the series' zone, and what is printed
-- around the number on that day. It is unused until the first number: no date yet.
CREATE TABLE series_counters (
    tenant_id       uuid        NOT NULL,
    series_id       uuid        NOT NULL,
    document        text        NOT NULL,
    period_start    date        NOT NULL,
    next_number     bigint      NOT NULL,
    last_issue_date date,
    issue_date_ends timestamptz,
    number_prefix   text        NOT NULL,
    number_suffix   text        NOT NULL,
    number_width    integer     NOT NULL,
    CONSTRAINT series_counters_series_fkey FOREIGN KEY (tenant_id, series_id) REFERENCES invoice_series (tenant_id, id),
    CONSTRAINT series_counters_next_number_positive CHECK (next_number >= 1),
    CONSTRAINT series_counters_date_whole CHECK ((last_issue_date IS NULL) = (issue_date_ends IS NULL))
) WITH (fillfactor = 50); -- room in the page, so that an update of the hot row need not move it
ALTER TABLE series_counters ADD CONSTRAINT series_counters_pkey PRIMARY KEY (tenant_id, series_id);
GRANT SELECT, INSERT, UPDATE ON series_counters TO countersign_runtime;

CREATE TABLE invoices (
    tenant_id             uuid        NOT NULL,
    id                    uuid        NOT NULL,
    customer_id           uuid        NOT NULL,
    kind                  text        NOT NULL,
    status                text        NOT NULL,
    series_id             uuid,
    period_start          date,
    sequence              bigint,
    number                text,
    issue_date            date,
    currency              text        NOT NULL,
    total_minor           bigint      NOT NULL,
    rounding_adjustment   numeric     NOT NULL,
    operation_id          uuid        NOT NULL,
    operation_fingerprint bytea       NOT NULL,
    created_by            text        NOT NULL,
    created_at            timestamptz NOT NULL,
    updated_at            timestamptz NOT NULL,
    CONSTRAINT invoices_operation_key UNIQUE (tenant_id, operation_id),
    -- The two guarantees behind the counter's lock: code that forgets the lock fails loudly.
    CONSTRAINT invoices_sequence_key UNIQUE (tenant_id, series_id, period_start, sequence),
    CONSTRAINT invoices_number_key UNIQUE (tenant_id, number),
    CONSTRAINT invoices_customer_fkey FOREIGN KEY (tenant_id, customer_id) REFERENCES customers (tenant_id, id),
    CONSTRAINT invoices_series_fkey FOREIGN KEY (tenant_id, series_id) REFERENCES invoice_series (tenant_id, id),
    CONSTRAINT invoices_kind_known CHECK (kind IN ('DIRECT')),
    CONSTRAINT invoices_status_known CHECK (status IN ('PENDING')),
    CONSTRAINT invoices_numbered_whole CHECK (num_nonnulls(series_id, period_start, sequence, number, issue_date) IN (0, 5)),
    CONSTRAINT invoices_pending_numbered CHECK (status <> 'PENDING' OR number IS NOT NULL),
    CONSTRAINT invoices_sequence_positive CHECK (sequence >= 1),
    CONSTRAINT invoices_total_not_negative CHECK (total_minor >= 0),
    CONSTRAINT invoices_currency_syntax CHECK (currency ~ '^[A-Z]{3}$')
);
CREATE INDEX invoices_customer ON invoices (tenant_id, customer_id, id);
ALTER TABLE invoices ADD CONSTRAINT invoices_pkey PRIMARY KEY (tenant_id, id);
GRANT SELECT, INSERT ON invoices TO countersign_runtime;

-- A line keeps its amount exactly; whole minor units exist only in the invoice's total.
CREATE TABLE invoice_lines (
    tenant_id    uuid    NOT NULL,
    invoice_id   uuid    NOT NULL,
    position     integer NOT NULL,
    description  text    NOT NULL,
    quantity     bigint  NOT NULL,
    unit_price   numeric NOT NULL,
    exact_amount numeric NOT NULL,
    CONSTRAINT invoice_lines_invoice_fkey FOREIGN KEY (tenant_id, invoice_id) REFERENCES invoices (tenant_id, id),
    CONSTRAINT invoice_lines_position_positive CHECK (position >= 1),
    CONSTRAINT invoice_lines_quantity_positive CHECK (quantity >= 1),
    CONSTRAINT invoice_lines_amount_exact CHECK (exact_amount = quantity * unit_price)
);
ALTER TABLE invoice_lines ADD CONSTRAINT invoice_lines_pkey PRIMARY KEY (tenant_id, invoice_id, position);
GRANT SELECT, INSERT ON invoice_lines TO countersign_runtime;
