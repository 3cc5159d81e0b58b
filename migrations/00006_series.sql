-- +goose Up

-- Why: series as laws ask for them. A series may start at 1 again each year, month or fiscal year;
-- its numbers may be bounded in length and in characters; and what each period numbered is kept.

ALTER TABLE invoice_series
    ADD COLUMN reset              text    NOT NULL DEFAULT 'NEVER',
    ADD COLUMN max_length         integer NOT NULL DEFAULT 64,
    ADD COLUMN allowed_characters text    NOT NULL DEFAULT 'PLAIN',
    ADD COLUMN capacity           bigint  NOT NULL DEFAULT 999999,
    ADD COLUMN preset             text,
    ADD CONSTRAINT invoice_series_reset_known CHECK (reset IN ('NEVER', 'YEARLY', 'MONTHLY', 'FISCAL_YEARLY')),
    ADD CONSTRAINT invoice_series_max_length_bounded CHECK (max_length BETWEEN 1 AND 64),
    ADD CONSTRAINT invoice_series_capacity_positive CHECK (capacity >= 1);

-- A tenant's series in the order in which they were made. A new one is compared with all that there
-- are, and takes the place after the last: of two that are made at once and do not see each other,
-- one finds the place taken and compares again.
CREATE TABLE series_places (
    tenant_id uuid    NOT NULL,
    place     integer NOT NULL,
    series_id uuid    NOT NULL,
    CONSTRAINT series_places_series_fkey FOREIGN KEY (tenant_id, series_id) REFERENCES invoice_series (tenant_id, id),
    CONSTRAINT series_places_place_positive CHECK (place >= 1)
);
ALTER TABLE series_places ADD CONSTRAINT series_places_pkey PRIMARY KEY (tenant_id, place);
GRANT SELECT, INSERT ON series_places TO countersign_runtime;
INSERT INTO series_places (tenant_id, place, series_id)
SELECT tenant_id, row_number() OVER (PARTITION BY tenant_id ORDER BY id), id FROM invoice_series;

-- The largest number that is printed within its legal length; the statement that takes a number
-- reads it from the row that it locks. Formats made so far hold every number of 18 digits.
ALTER TABLE series_counters
    ADD COLUMN max_number bigint NOT NULL DEFAULT 999999999999999999,
    ADD CONSTRAINT series_counters_within_max_number CHECK (next_number <= max_number + 1);

-- A period that a series has left, and what it numbered in it. Written once, when the first number
-- of a later period is taken, under the counter's lock; a period without a number leaves no row.
CREATE TABLE series_periods (
    tenant_id    uuid        NOT NULL,
    series_id    uuid        NOT NULL,
    period_start date        NOT NULL,
    first_number bigint      NOT NULL,
    last_number  bigint      NOT NULL,
    closed_at    timestamptz NOT NULL,
    CONSTRAINT series_periods_series_fkey FOREIGN KEY (tenant_id, series_id) REFERENCES invoice_series (tenant_id, id),
    CONSTRAINT series_periods_numbers_in_order CHECK (first_number >= 1 AND last_number >= first_number)
);
ALTER TABLE series_periods ADD CONSTRAINT series_periods_pkey PRIMARY KEY (tenant_id, series_id, period_start);
GRANT SELECT, INSERT ON series_periods TO countersign_runtime;
