-- +goose Up

-- Why: usage. Customers' API keys are metered; what a key has used in a month is settled once, and
-- every settlement's value goes to exactly one place: the month's invoice, an invoice of its own, or
-- a skip that is written down.

-- An exemption ends, and is never deleted: it is the evidence of what was waived under it.
CREATE TABLE billing_exemptions (
    tenant_id             uuid        NOT NULL,
    id                    uuid        NOT NULL,
    customer_id           uuid        NOT NULL,
    reason                text        NOT NULL,
    operation_id          uuid        NOT NULL,
    operation_fingerprint bytea       NOT NULL,
    granted_by            text        NOT NULL,
    granted_at            timestamptz NOT NULL,
    ended_by              text,
    ended_at              timestamptz,
    end_operation_id      uuid,
    end_fingerprint       bytea,
    CONSTRAINT billing_exemptions_operation_key UNIQUE (tenant_id, operation_id),
    CONSTRAINT billing_exemptions_customer_fkey FOREIGN KEY (tenant_id, customer_id) REFERENCES customers (tenant_id, id),
    CONSTRAINT billing_exemptions_end_whole CHECK (num_nonnulls(ended_by, ended_at, end_operation_id, end_fingerprint) IN (0, 4))
);
-- Partial, so that ending an exemption updates no key: it does not wait for the folds that refer to it.
CREATE UNIQUE INDEX billing_exemptions_end_operation_key ON billing_exemptions (tenant_id, end_operation_id) WHERE end_operation_id IS NOT NULL;
CREATE UNIQUE INDEX billing_exemptions_one_active_key ON billing_exemptions (tenant_id, customer_id) WHERE ended_at IS NULL;
ALTER TABLE billing_exemptions ADD CONSTRAINT billing_exemptions_pkey PRIMARY KEY (tenant_id, id);
GRANT SELECT, INSERT ON billing_exemptions TO countersign_runtime;
GRANT UPDATE (ended_by, ended_at, end_operation_id, end_fingerprint) ON billing_exemptions TO countersign_runtime;

-- A customer's month: its zone and bounds are pinned here before anything is used in it. Folds hold
-- the row shared, closing holds it alone, so that a month cannot close while something is about to
-- be put into its invoice.
CREATE TABLE billing_periods (
    tenant_id   uuid        NOT NULL,
    customer_id uuid        NOT NULL,
    month       date        NOT NULL,
    time_zone   text        NOT NULL,
    starts_at   timestamptz NOT NULL,
    ends_at     timestamptz NOT NULL,
    closed_at   timestamptz,
    CONSTRAINT billing_periods_customer_fkey FOREIGN KEY (tenant_id, customer_id) REFERENCES customers (tenant_id, id),
    CONSTRAINT billing_periods_month_first CHECK (extract(day FROM month) = 1),
    CONSTRAINT billing_periods_bounds_ordered CHECK (starts_at < ends_at)
);
ALTER TABLE billing_periods ADD CONSTRAINT billing_periods_pkey PRIMARY KEY (tenant_id, customer_id, month);
GRANT SELECT, INSERT ON billing_periods TO countersign_runtime;
GRANT UPDATE (closed_at) ON billing_periods TO countersign_runtime;

CREATE TABLE api_keys (
    tenant_id             uuid        NOT NULL,
    id                    uuid        NOT NULL,
    customer_id           uuid        NOT NULL,
    name                  text        NOT NULL,
    unit_price            numeric     NOT NULL,
    secret_hash           bytea       NOT NULL,
    hint                  text        NOT NULL,
    status                text        NOT NULL,
    operation_id          uuid        NOT NULL,
    operation_fingerprint bytea       NOT NULL,
    created_by            text        NOT NULL,
    created_at            timestamptz NOT NULL,
    revoked_at            timestamptz,
    updated_at            timestamptz NOT NULL,
    CONSTRAINT api_keys_operation_key UNIQUE (tenant_id, operation_id),
    CONSTRAINT api_keys_secret_hash_key UNIQUE (tenant_id, secret_hash),
    CONSTRAINT api_keys_customer_fkey FOREIGN KEY (tenant_id, customer_id) REFERENCES customers (tenant_id, id),
    CONSTRAINT api_keys_status_known CHECK (status IN ('ACTIVE', 'REVOKED')),
    CONSTRAINT api_keys_revoked_has_revoked_at CHECK ((status = 'REVOKED') = (revoked_at IS NOT NULL)),
    CONSTRAINT api_keys_unit_price_not_negative CHECK (unit_price >= 0),
    CONSTRAINT api_keys_name_length CHECK (char_length(name) BETWEEN 1 AND 200)
);
CREATE INDEX api_keys_customer ON api_keys (tenant_id, customer_id, id);
ALTER TABLE api_keys ADD CONSTRAINT api_keys_pkey PRIMARY KEY (tenant_id, id);
GRANT SELECT, INSERT ON api_keys TO countersign_runtime;
GRANT UPDATE (status, revoked_at, updated_at) ON api_keys TO countersign_runtime;

-- The announcement of a revocation, committed before the key is locked: ingestion does not touch an
-- announced key, so that a stream of usage cannot hold the revocation up.
CREATE TABLE api_key_revocations (
    tenant_id             uuid        NOT NULL,
    api_key_id            uuid        NOT NULL,
    reason                text,
    operation_id          uuid        NOT NULL,
    operation_fingerprint bytea       NOT NULL,
    announced_by          text        NOT NULL,
    announced_at          timestamptz NOT NULL,
    settled_at            timestamptz,
    CONSTRAINT api_key_revocations_operation_key UNIQUE (tenant_id, operation_id),
    CONSTRAINT api_key_revocations_api_key_fkey FOREIGN KEY (tenant_id, api_key_id) REFERENCES api_keys (tenant_id, id)
);
CREATE INDEX api_key_revocations_unsettled ON api_key_revocations (announced_at) WHERE settled_at IS NULL;
ALTER TABLE api_key_revocations ADD CONSTRAINT api_key_revocations_pkey PRIMARY KEY (tenant_id, api_key_id);
GRANT SELECT, INSERT ON api_key_revocations TO countersign_runtime;
GRANT UPDATE (settled_at) ON api_key_revocations TO countersign_runtime;

CREATE TABLE settlements (
    tenant_id    uuid        NOT NULL,
    id           uuid        NOT NULL,
    customer_id  uuid        NOT NULL,
    api_key_id   uuid        NOT NULL,
    month        date        NOT NULL,
    ordinal      integer     NOT NULL,
    quantity     bigint      NOT NULL,
    unit_price   numeric     NOT NULL,
    amount       numeric     NOT NULL,
    outcome      text        NOT NULL,
    round        integer     NOT NULL,
    invoice_id   uuid,
    exemption_id uuid,
    created_at   timestamptz NOT NULL,
    settled_at   timestamptz,
    updated_at   timestamptz NOT NULL,
    -- A key's month is settled once per ordinal: late adjustments follow.
    CONSTRAINT settlements_ordinal_key UNIQUE (tenant_id, api_key_id, month, ordinal),
    CONSTRAINT settlements_api_key_fkey FOREIGN KEY (tenant_id, api_key_id) REFERENCES api_keys (tenant_id, id),
    CONSTRAINT settlements_period_fkey FOREIGN KEY (tenant_id, customer_id, month) REFERENCES billing_periods (tenant_id, customer_id, month),
    CONSTRAINT settlements_invoice_fkey FOREIGN KEY (tenant_id, invoice_id) REFERENCES invoices (tenant_id, id),
    CONSTRAINT settlements_exemption_fkey FOREIGN KEY (tenant_id, exemption_id) REFERENCES billing_exemptions (tenant_id, id),
    CONSTRAINT settlements_outcome_known CHECK (outcome IN ('PENDING', 'FOLDED', 'FOLDED_WAIVED', 'BILLED_SEPARATELY', 'SKIPPED_SUB_CENT', 'NOTHING_TO_BILL')),
    CONSTRAINT settlements_amount_exact CHECK (amount = quantity * unit_price),
    CONSTRAINT settlements_quantity_not_negative CHECK (quantity >= 0),
    CONSTRAINT settlements_placed_has_invoice CHECK ((outcome IN ('FOLDED', 'FOLDED_WAIVED', 'BILLED_SEPARATELY')) = (invoice_id IS NOT NULL)),
    CONSTRAINT settlements_pending_not_settled CHECK ((outcome = 'PENDING') = (settled_at IS NULL))
);
CREATE INDEX settlements_customer ON settlements (tenant_id, customer_id, id);
CREATE INDEX settlements_invoice ON settlements (tenant_id, invoice_id) WHERE invoice_id IS NOT NULL;
CREATE INDEX settlements_pending ON settlements (created_at) WHERE outcome = 'PENDING';
ALTER TABLE settlements ADD CONSTRAINT settlements_pkey PRIMARY KEY (tenant_id, id);
GRANT SELECT, INSERT ON settlements TO countersign_runtime;
GRANT UPDATE (outcome, round, invoice_id, exemption_id, settled_at, updated_at) ON settlements TO countersign_runtime;

-- The receipt: what each attempt to place a settlement saw, and why it was refused. Only grows.
CREATE TABLE settlement_attempts (
    tenant_id     uuid        NOT NULL,
    settlement_id uuid        NOT NULL,
    position      integer     NOT NULL,
    round         integer     NOT NULL,
    way           text        NOT NULL,
    saw           text        NOT NULL,
    exemption_id  uuid,
    result        text        NOT NULL,
    attempted_at  timestamptz NOT NULL,
    CONSTRAINT settlement_attempts_settlement_fkey FOREIGN KEY (tenant_id, settlement_id) REFERENCES settlements (tenant_id, id),
    CONSTRAINT settlement_attempts_way_known CHECK (way IN ('FOLD', 'RECOVERY', 'VOID'))
);
ALTER TABLE settlement_attempts ADD CONSTRAINT settlement_attempts_pkey PRIMARY KEY (tenant_id, settlement_id, position);
GRANT SELECT, INSERT ON settlement_attempts TO countersign_runtime;

-- An event counts once for ever, by the client's id.
CREATE TABLE usage_events (
    tenant_id     uuid        NOT NULL,
    event_id      text        NOT NULL,
    api_key_id    uuid        NOT NULL,
    customer_id   uuid        NOT NULL,
    month         date        NOT NULL,
    quantity      bigint      NOT NULL,
    occurred_at   timestamptz NOT NULL,
    recorded_at   timestamptz NOT NULL,
    settlement_id uuid,
    CONSTRAINT usage_events_api_key_fkey FOREIGN KEY (tenant_id, api_key_id) REFERENCES api_keys (tenant_id, id),
    CONSTRAINT usage_events_period_fkey FOREIGN KEY (tenant_id, customer_id, month) REFERENCES billing_periods (tenant_id, customer_id, month),
    CONSTRAINT usage_events_settlement_fkey FOREIGN KEY (tenant_id, settlement_id) REFERENCES settlements (tenant_id, id),
    CONSTRAINT usage_events_quantity_positive CHECK (quantity >= 1),
    CONSTRAINT usage_events_id_length CHECK (char_length(event_id) BETWEEN 1 AND 255)
);
CREATE INDEX usage_events_unsettled ON usage_events (tenant_id, api_key_id, month) WHERE settlement_id IS NULL;
CREATE INDEX usage_events_settlement ON usage_events (tenant_id, settlement_id) WHERE settlement_id IS NOT NULL;
ALTER TABLE usage_events ADD CONSTRAINT usage_events_pkey PRIMARY KEY (tenant_id, event_id);
GRANT SELECT, INSERT ON usage_events TO countersign_runtime;
GRANT UPDATE (settlement_id) ON usage_events TO countersign_runtime;

-- A request of usage that was given a key of its own; its events have theirs in any case.
CREATE TABLE usage_batches (
    tenant_id             uuid        NOT NULL,
    id                    uuid        NOT NULL,
    operation_id          uuid        NOT NULL,
    operation_fingerprint bytea       NOT NULL,
    accepted              integer     NOT NULL,
    duplicates            integer     NOT NULL,
    refused               jsonb       NOT NULL,
    recorded_by           text        NOT NULL,
    recorded_at           timestamptz NOT NULL,
    CONSTRAINT usage_batches_operation_key UNIQUE (tenant_id, operation_id),
    CONSTRAINT usage_batches_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES ops.tenants (id)
);
ALTER TABLE usage_batches ADD CONSTRAINT usage_batches_pkey PRIMARY KEY (tenant_id, id);
GRANT SELECT, INSERT ON usage_batches TO countersign_runtime;

-- Invoices learn to accrue, to be paid, waived and voided.
ALTER TABLE invoices
    ADD COLUMN usage_month date,
    ADD COLUMN waived_by text,
    ADD COLUMN waive_reason text,
    ADD COLUMN exemption_id uuid,
    ADD COLUMN waive_verified_at timestamptz,
    ADD COLUMN paid_at timestamptz,
    ADD COLUMN payment_reference text,
    ADD COLUMN voided_at timestamptz,
    ADD COLUMN void_reason text,
    DROP CONSTRAINT invoices_kind_known,
    DROP CONSTRAINT invoices_status_known,
    DROP CONSTRAINT invoices_pending_numbered,
    ADD CONSTRAINT invoices_kind_known CHECK (kind IN ('DIRECT', 'USAGE', 'RESIDUAL')),
    ADD CONSTRAINT invoices_status_known CHECK (status IN ('OPEN', 'PENDING', 'PAID', 'WAIVED', 'VOID')),
    ADD CONSTRAINT invoices_final_numbered CHECK (status NOT IN ('PENDING', 'PAID') OR number IS NOT NULL),
    ADD CONSTRAINT invoices_open_not_numbered CHECK (status <> 'OPEN' OR number IS NULL),
    ADD CONSTRAINT invoices_usage_has_month CHECK ((kind = 'DIRECT') = (usage_month IS NULL)),
    ADD CONSTRAINT invoices_waived_has_cause CHECK ((status = 'WAIVED') = (waived_by IS NOT NULL)),
    ADD CONSTRAINT invoices_waived_by_known CHECK (waived_by IN ('EXEMPTION', 'MANUAL')),
    ADD CONSTRAINT invoices_waive_evidence CHECK ((waived_by IS NOT DISTINCT FROM 'EXEMPTION') = (exemption_id IS NOT NULL)),
    ADD CONSTRAINT invoices_waive_reason CHECK ((waived_by IS NOT DISTINCT FROM 'MANUAL') = (waive_reason IS NOT NULL)),
    ADD CONSTRAINT invoices_verified_is_waived CHECK (waive_verified_at IS NULL OR waived_by = 'EXEMPTION'),
    ADD CONSTRAINT invoices_paid_has_paid_at CHECK ((status = 'PAID') = (paid_at IS NOT NULL)),
    ADD CONSTRAINT invoices_paid_has_reference CHECK ((status = 'PAID') = (payment_reference IS NOT NULL)),
    ADD CONSTRAINT invoices_void_has_reason CHECK ((status = 'VOID') = (void_reason IS NOT NULL) AND (status = 'VOID') = (voided_at IS NOT NULL)),
    ADD CONSTRAINT invoices_exemption_fkey FOREIGN KEY (tenant_id, exemption_id) REFERENCES billing_exemptions (tenant_id, id),
    ADD CONSTRAINT invoices_period_fkey FOREIGN KEY (tenant_id, customer_id, usage_month) REFERENCES billing_periods (tenant_id, customer_id, month);
-- A customer's month has one invoice that accrues: of two first folds, this refuses one.
CREATE UNIQUE INDEX invoices_monthly_key ON invoices (tenant_id, customer_id, usage_month) WHERE kind = 'USAGE';
-- What an exemption may have to do with: what the looks and the sweep read.
CREATE INDEX invoices_looked_at ON invoices (tenant_id, customer_id, id) WHERE status = 'OPEN' OR waived_by = 'EXEMPTION';
CREATE INDEX invoices_reference ON invoices (id);
GRANT UPDATE (status, series_id, period_start, sequence, number, issue_date, total_minor, rounding_adjustment, waived_by, waive_reason,
    exemption_id, waive_verified_at, paid_at, payment_reference, voided_at, void_reason, updated_at) ON invoices TO countersign_runtime;

-- A line of usage belongs to a settlement, once per round: nothing folds twice. The primary key is
-- made again, so that it stays the last.
ALTER TABLE invoice_lines
    ADD COLUMN settlement_id uuid,
    ADD COLUMN settlement_round integer,
    DROP CONSTRAINT invoice_lines_quantity_positive,
    DROP CONSTRAINT invoice_lines_pkey,
    ADD CONSTRAINT invoice_lines_quantity_not_negative CHECK (quantity >= 0),
    ADD CONSTRAINT invoice_lines_settlement_whole CHECK ((settlement_id IS NULL) = (settlement_round IS NULL)),
    ADD CONSTRAINT invoice_lines_settlement_key UNIQUE (tenant_id, settlement_id, settlement_round),
    ADD CONSTRAINT invoice_lines_settlement_fkey FOREIGN KEY (tenant_id, settlement_id) REFERENCES settlements (tenant_id, id);
ALTER TABLE invoice_lines ADD CONSTRAINT invoice_lines_pkey PRIMARY KEY (tenant_id, invoice_id, position);

-- Each move of an invoice. Only grows.
CREATE TABLE invoice_history (
    tenant_id             uuid        NOT NULL,
    id                    uuid        NOT NULL,
    invoice_id            uuid        NOT NULL,
    position              integer     NOT NULL,
    event                 text        NOT NULL,
    from_status           text        NOT NULL,
    to_status             text        NOT NULL,
    detail                text,
    operation_id          uuid        NOT NULL,
    operation_fingerprint bytea       NOT NULL,
    moved_by              text        NOT NULL,
    moved_at              timestamptz NOT NULL,
    CONSTRAINT invoice_history_operation_key UNIQUE (tenant_id, operation_id),
    CONSTRAINT invoice_history_position_key UNIQUE (tenant_id, invoice_id, position),
    CONSTRAINT invoice_history_invoice_fkey FOREIGN KEY (tenant_id, invoice_id) REFERENCES invoices (tenant_id, id)
);
ALTER TABLE invoice_history ADD CONSTRAINT invoice_history_pkey PRIMARY KEY (tenant_id, id);
GRANT SELECT, INSERT ON invoice_history TO countersign_runtime;
