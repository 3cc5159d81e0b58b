-- +goose Up

-- Why: everything belongs to a tenant, and every caller to one. Tenants live in the schema "ops",
-- with the other tables that are not sharded by tenant. The record of migrations lives there too,
-- so that the schema is usually here already.
CREATE SCHEMA IF NOT EXISTS ops;

-- A role without login that owns nothing: the server works as it, so that no bug of the server
-- can update or delete what only grows. Roles belong to the cluster, and several databases of one
-- cluster may be migrated at once: whoever is second finds the role.
-- +goose StatementBegin
DO $$
BEGIN
    -- An owner that may not make roles is given this one by somebody who may.
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'countersign_runtime') THEN
        CREATE ROLE countersign_runtime NOLOGIN;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
    NULL;
END
$$;
-- +goose StatementEnd

-- Before PostgreSQL 15 everybody could make tables in this schema.
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public, ops TO countersign_runtime;

CREATE TABLE ops.tenants (
    id         uuid        NOT NULL,
    handle     text        NOT NULL,
    name       text        NOT NULL,
    created_at timestamptz NOT NULL,
    CONSTRAINT tenants_handle_key UNIQUE (handle),
    CONSTRAINT tenants_handle_syntax CHECK (handle ~ '^[a-z0-9][a-z0-9-]{0,39}$'),
    CONSTRAINT tenants_name_length CHECK (char_length(name) BETWEEN 1 AND 200)
);
ALTER TABLE ops.tenants ADD CONSTRAINT tenants_pkey PRIMARY KEY (id);
GRANT SELECT, INSERT ON ops.tenants TO countersign_runtime;

-- In every table below the primary key is added after the unique constraints. A foreign key's
-- check that is planned while its table is still empty takes the index made last among equals,
-- and keeps the plan: with another index it reads every row of the tenant.

CREATE TABLE customers (
    tenant_id             uuid        NOT NULL,
    id                    uuid        NOT NULL,
    name                  text        NOT NULL,
    email                 text,
    currency              text        NOT NULL,
    time_zone             text        NOT NULL,
    operation_id          uuid        NOT NULL,
    operation_fingerprint bytea       NOT NULL,
    created_by            text        NOT NULL,
    created_at            timestamptz NOT NULL,
    updated_at            timestamptz NOT NULL,
    CONSTRAINT customers_operation_key UNIQUE (tenant_id, operation_id),
    CONSTRAINT customers_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES ops.tenants (id),
    CONSTRAINT customers_name_length CHECK (char_length(name) BETWEEN 1 AND 200),
    CONSTRAINT customers_email_length CHECK (char_length(email) BETWEEN 3 AND 254),
    CONSTRAINT customers_currency_syntax CHECK (currency ~ '^[A-Z]{3}$')
);
ALTER TABLE customers ADD CONSTRAINT customers_pkey PRIMARY KEY (tenant_id, id);
GRANT SELECT, INSERT ON customers TO countersign_runtime;

-- Only hashes are kept: whoever reads this table cannot call the server.
CREATE TABLE access_tokens (
    tenant_id   uuid        NOT NULL,
    id          uuid        NOT NULL,
    name        text        NOT NULL,
    role        text        NOT NULL,
    customer_id uuid,
    secret_hash bytea       NOT NULL,
    hint        text        NOT NULL,
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz,
    revoked_at  timestamptz,
    updated_at  timestamptz NOT NULL,
    CONSTRAINT access_tokens_secret_hash_key UNIQUE (tenant_id, secret_hash),
    CONSTRAINT access_tokens_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES ops.tenants (id),
    CONSTRAINT access_tokens_customer_fkey FOREIGN KEY (tenant_id, customer_id) REFERENCES customers (tenant_id, id),
    CONSTRAINT access_tokens_role_known CHECK (role IN ('ADMIN', 'SERVICE', 'CUSTOMER')),
    CONSTRAINT access_tokens_customer_if_role CHECK ((role = 'CUSTOMER') = (customer_id IS NOT NULL)),
    CONSTRAINT access_tokens_hash_length CHECK (octet_length(secret_hash) = 32),
    CONSTRAINT access_tokens_name_length CHECK (char_length(name) <= 200)
);
ALTER TABLE access_tokens ADD CONSTRAINT access_tokens_pkey PRIMARY KEY (tenant_id, id);
GRANT SELECT, INSERT ON access_tokens TO countersign_runtime;
GRANT UPDATE (revoked_at, updated_at) ON access_tokens TO countersign_runtime;
