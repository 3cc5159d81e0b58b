-- +goose Up

-- Why: a token may be narrowed to scopes, replaced by a new secret without an outage, and managed
-- by administrators over the API: so it says who made it, and each of its moves says who made that.

ALTER TABLE access_tokens
    ADD COLUMN scopes                text[], -- NULL: all that its role may
    ADD COLUMN replaces              uuid,   -- the token that it was rotated from
    ADD COLUMN operation_id          uuid,
    ADD COLUMN operation_fingerprint bytea,
    ADD COLUMN created_by            text;

-- Those that are here were made by the command line, each by a write of its own.
UPDATE access_tokens SET operation_id = id, operation_fingerprint = '\x', created_by = 'command';

ALTER TABLE access_tokens
    ALTER COLUMN operation_id SET NOT NULL,
    ALTER COLUMN operation_fingerprint SET NOT NULL,
    ALTER COLUMN created_by SET NOT NULL,
    -- An empty list would be a token that may nothing: nobody means that.
    ADD CONSTRAINT access_tokens_scopes_not_empty CHECK (cardinality(scopes) > 0),
    ADD CONSTRAINT access_tokens_replaces_another CHECK (replaces <> id);

-- The primary key is made last, as in every table.
ALTER TABLE access_tokens DROP CONSTRAINT access_tokens_pkey;
ALTER TABLE access_tokens ADD CONSTRAINT access_tokens_operation_key UNIQUE (tenant_id, operation_id);
-- Of those who rotate one token at the same moment one makes its successor; the others find it.
CREATE UNIQUE INDEX access_tokens_replaces_key ON access_tokens (tenant_id, replaces) WHERE replaces IS NOT NULL;
ALTER TABLE access_tokens ADD CONSTRAINT access_tokens_pkey PRIMARY KEY (tenant_id, id);
ALTER TABLE access_tokens ADD CONSTRAINT access_tokens_predecessor_fkey FOREIGN KEY (tenant_id, replaces) REFERENCES access_tokens (tenant_id, id);
GRANT UPDATE (expires_at) ON access_tokens TO countersign_runtime;

-- Each move of a token: it is rotated once and revoked once. Only grows.
CREATE TABLE access_token_history (
    tenant_id             uuid        NOT NULL,
    id                    uuid        NOT NULL,
    token_id              uuid        NOT NULL,
    event                 text        NOT NULL,
    operation_id          uuid        NOT NULL,
    operation_fingerprint bytea       NOT NULL,
    moved_by              text        NOT NULL,
    moved_at              timestamptz NOT NULL,
    CONSTRAINT access_token_history_operation_key UNIQUE (tenant_id, operation_id),
    CONSTRAINT access_token_history_once_key UNIQUE (tenant_id, token_id, event),
    CONSTRAINT access_token_history_token_fkey FOREIGN KEY (tenant_id, token_id) REFERENCES access_tokens (tenant_id, id),
    CONSTRAINT access_token_history_event_known CHECK (event IN ('ROTATED', 'REVOKED'))
);
ALTER TABLE access_token_history ADD CONSTRAINT access_token_history_pkey PRIMARY KEY (tenant_id, id);
GRANT SELECT, INSERT ON access_token_history TO countersign_runtime;

-- What is billed by says who recorded it. Of the events that are here only their batch may know.
ALTER TABLE usage_events ADD COLUMN recorded_by text NOT NULL DEFAULT 'unknown';
ALTER TABLE usage_events ALTER COLUMN recorded_by DROP DEFAULT;
