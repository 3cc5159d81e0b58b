-- +goose Up

-- Why: a series' ledger. Each of its numbers, from the first to the last, is an invoice's or stands
-- in an entry that says where it went: to the system that numbered before, or nowhere.

-- What was done to a series beside numbering with it: an import, or the resync of a counter. A change
-- takes the place after the last one that it saw: of two that are made at once and do not see each
-- other, one finds the place taken and looks at everything again.
CREATE TABLE series_changes (
    tenant_id             uuid        NOT NULL,
    series_id             uuid        NOT NULL,
    position              integer     NOT NULL,
    id                    uuid        NOT NULL,
    kind                  text        NOT NULL,
    period_start          date        NOT NULL,
    first_number          bigint,
    last_number           bigint,
    imported_numbers      bigint      NOT NULL,
    voided_numbers        bigint      NOT NULL,
    skipped_numbers       bigint      NOT NULL,
    next_number_before    bigint      NOT NULL,
    next_number           bigint      NOT NULL,
    reason                text        NOT NULL,
    operation_id          uuid        NOT NULL,
    operation_fingerprint bytea       NOT NULL,
    changed_by            text        NOT NULL,
    changed_at            timestamptz NOT NULL,
    CONSTRAINT series_changes_operation_key UNIQUE (tenant_id, operation_id),
    CONSTRAINT series_changes_series_fkey FOREIGN KEY (tenant_id, series_id) REFERENCES invoice_series (tenant_id, id),
    CONSTRAINT series_changes_position_positive CHECK (position >= 1),
    CONSTRAINT series_changes_kind_known CHECK (kind IN ('IMPORT', 'RESYNC')),
    CONSTRAINT series_changes_entries_whole CHECK ((first_number IS NULL) = (last_number IS NULL)
        AND (first_number IS NULL) = (imported_numbers + voided_numbers + skipped_numbers = 0)),
    -- A counter never goes back.
    CONSTRAINT series_changes_counter_rises CHECK (next_number_before >= 1 AND next_number >= next_number_before)
);
ALTER TABLE series_changes ADD CONSTRAINT series_changes_pkey PRIMARY KEY (tenant_id, series_id, position);
GRANT SELECT, INSERT ON series_changes TO countersign_runtime;

-- A run of numbers with one outcome. It does not refer to its change by a foreign key: the entries are
-- written before the counter is locked, the change under the lock. Two runs that overlap without
-- sharing an end are refused under the lock, where the indexes cannot see it.
CREATE TABLE series_entries (
    tenant_id    uuid   NOT NULL,
    series_id    uuid   NOT NULL,
    period_start date   NOT NULL,
    first_number bigint NOT NULL,
    last_number  bigint NOT NULL,
    change_id    uuid   NOT NULL,
    state        text   NOT NULL,
    issue_date   date,
    reference    text,
    reason       text   NOT NULL,
    CONSTRAINT series_entries_last_key UNIQUE (tenant_id, series_id, period_start, last_number),
    CONSTRAINT series_entries_series_fkey FOREIGN KEY (tenant_id, series_id) REFERENCES invoice_series (tenant_id, id),
    CONSTRAINT series_entries_numbers_in_order CHECK (first_number >= 1 AND last_number >= first_number),
    CONSTRAINT series_entries_state_known CHECK (state IN ('IMPORTED', 'VOIDED_ELSEWHERE', 'SKIPPED'))
);
CREATE INDEX series_entries_void ON series_entries (tenant_id, series_id, period_start, first_number) WHERE state = 'VOIDED_ELSEWHERE';
ALTER TABLE series_entries ADD CONSTRAINT series_entries_pkey PRIMARY KEY (tenant_id, series_id, period_start, first_number);
GRANT SELECT, INSERT ON series_entries TO countersign_runtime;

-- The void invoices of a series. Its predicate is a column that only a void changes: one over the
-- status would cost every other move its update in place.
CREATE INDEX invoices_void ON invoices (tenant_id, series_id, period_start, sequence) WHERE voided_at IS NOT NULL;
