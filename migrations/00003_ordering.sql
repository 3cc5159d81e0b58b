-- +goose Up

-- Why: orders. An order is placed once per key, is paid by captures that are each accounted for, and
-- moves through its states with a history that only grows.

CREATE TABLE products (
    tenant_id             uuid        NOT NULL,
    id                    uuid        NOT NULL,
    sku                   text        NOT NULL,
    name                  text        NOT NULL,
    unit_price_minor      bigint      NOT NULL,
    currency              text        NOT NULL,
    active                boolean     NOT NULL,
    tracks_stock          boolean     NOT NULL,
    operation_id          uuid        NOT NULL,
    operation_fingerprint bytea       NOT NULL,
    created_by            text        NOT NULL,
    created_at            timestamptz NOT NULL,
    updated_at            timestamptz NOT NULL,
    CONSTRAINT products_operation_key UNIQUE (tenant_id, operation_id),
    CONSTRAINT products_sku_key UNIQUE (tenant_id, sku),
    CONSTRAINT products_tenant_fkey FOREIGN KEY (tenant_id) REFERENCES ops.tenants (id),
    CONSTRAINT products_sku_length CHECK (char_length(sku) BETWEEN 1 AND 100),
    CONSTRAINT products_name_length CHECK (char_length(name) BETWEEN 1 AND 200),
    CONSTRAINT products_unit_price_not_negative CHECK (unit_price_minor >= 0),
    CONSTRAINT products_currency_syntax CHECK (currency ~ '^[A-Z]{3}$')
);
ALTER TABLE products ADD CONSTRAINT products_pkey PRIMARY KEY (tenant_id, id);
GRANT SELECT, INSERT ON products TO countersign_runtime;
GRANT UPDATE (name, unit_price_minor, active, updated_at) ON products TO countersign_runtime;

-- What is on the shelf is only counted, so it has no version token.
CREATE TABLE product_stock (
    tenant_id  uuid   NOT NULL,
    product_id uuid   NOT NULL,
    available  bigint NOT NULL,
    CONSTRAINT product_stock_product_fkey FOREIGN KEY (tenant_id, product_id) REFERENCES products (tenant_id, id),
    CONSTRAINT product_stock_available_not_negative CHECK (available >= 0)
);
ALTER TABLE product_stock ADD CONSTRAINT product_stock_pkey PRIMARY KEY (tenant_id, product_id);
GRANT SELECT, INSERT ON product_stock TO countersign_runtime;
GRANT UPDATE (available) ON product_stock TO countersign_runtime;

CREATE TABLE product_changes (
    tenant_id             uuid        NOT NULL,
    id                    uuid        NOT NULL,
    product_id            uuid        NOT NULL,
    name                  text        NOT NULL,
    unit_price_minor      bigint      NOT NULL,
    active                boolean     NOT NULL,
    operation_id          uuid        NOT NULL,
    operation_fingerprint bytea       NOT NULL,
    changed_by            text        NOT NULL,
    changed_at            timestamptz NOT NULL,
    CONSTRAINT product_changes_operation_key UNIQUE (tenant_id, operation_id),
    CONSTRAINT product_changes_product_fkey FOREIGN KEY (tenant_id, product_id) REFERENCES products (tenant_id, id)
);
ALTER TABLE product_changes ADD CONSTRAINT product_changes_pkey PRIMARY KEY (tenant_id, id);
GRANT SELECT, INSERT ON product_changes TO countersign_runtime;

CREATE TABLE orders (
    tenant_id             uuid        NOT NULL,
    id                    uuid        NOT NULL,
    customer_id           uuid        NOT NULL,
    idempotency_key       text        NOT NULL,
    status                text        NOT NULL,
    currency              text        NOT NULL,
    total_minor           bigint      NOT NULL,
    refunded_minor        bigint      NOT NULL,
    attention             text,
    operation_id          uuid        NOT NULL,
    operation_fingerprint bytea       NOT NULL,
    created_by            text        NOT NULL,
    created_at            timestamptz NOT NULL,
    paid_at               timestamptz,
    fulfilled_at          timestamptz,
    cancelled_at          timestamptz,
    refunded_at           timestamptz,
    updated_at            timestamptz NOT NULL,
    -- The guarantee that a key places one order: of two first requests, this refuses one.
    CONSTRAINT orders_idempotency_key UNIQUE (tenant_id, customer_id, idempotency_key),
    CONSTRAINT orders_operation_key UNIQUE (tenant_id, operation_id),
    CONSTRAINT orders_customer_fkey FOREIGN KEY (tenant_id, customer_id) REFERENCES customers (tenant_id, id),
    CONSTRAINT orders_status_known CHECK (status IN ('PENDING', 'PAID', 'FULFILLED', 'CANCELLED', 'REFUNDED')),
    CONSTRAINT orders_paid_has_paid_at CHECK ((status IN ('PAID', 'FULFILLED', 'REFUNDED')) = (paid_at IS NOT NULL)),
    CONSTRAINT orders_fulfilled_has_fulfilled_at CHECK (status <> 'FULFILLED' OR fulfilled_at IS NOT NULL),
    CONSTRAINT orders_cancelled_has_cancelled_at CHECK ((status = 'CANCELLED') = (cancelled_at IS NOT NULL)),
    CONSTRAINT orders_refunded_has_refunded_at CHECK ((status = 'REFUNDED') = (refunded_at IS NOT NULL)),
    CONSTRAINT orders_total_not_negative CHECK (total_minor >= 0),
    CONSTRAINT orders_refund_within_total CHECK (refunded_minor BETWEEN 0 AND total_minor),
    CONSTRAINT orders_refund_of_paid CHECK (refunded_minor = 0 OR paid_at IS NOT NULL),
    CONSTRAINT orders_key_length CHECK (char_length(idempotency_key) BETWEEN 1 AND 255),
    CONSTRAINT orders_currency_syntax CHECK (currency ~ '^[A-Z]{3}$')
);
CREATE INDEX orders_customer ON orders (tenant_id, customer_id, id);
-- A webhook names an order without its tenant.
CREATE INDEX orders_reference ON orders (id);
CREATE INDEX orders_pending ON orders (created_at) WHERE status = 'PENDING';
ALTER TABLE orders ADD CONSTRAINT orders_pkey PRIMARY KEY (tenant_id, id);
GRANT SELECT, INSERT ON orders TO countersign_runtime;
GRANT UPDATE (status, refunded_minor, attention, paid_at, fulfilled_at, cancelled_at, refunded_at, updated_at) ON orders TO countersign_runtime;

CREATE TABLE order_lines (
    tenant_id        uuid    NOT NULL,
    order_id         uuid    NOT NULL,
    position         integer NOT NULL,
    product_id       uuid    NOT NULL,
    name             text    NOT NULL,
    quantity         integer NOT NULL,
    unit_price_minor bigint  NOT NULL,
    amount_minor     bigint  NOT NULL,
    takes_stock      boolean NOT NULL,
    CONSTRAINT order_lines_product_key UNIQUE (tenant_id, order_id, product_id),
    CONSTRAINT order_lines_order_fkey FOREIGN KEY (tenant_id, order_id) REFERENCES orders (tenant_id, id),
    CONSTRAINT order_lines_product_fkey FOREIGN KEY (tenant_id, product_id) REFERENCES products (tenant_id, id),
    CONSTRAINT order_lines_quantity_positive CHECK (quantity >= 1),
    CONSTRAINT order_lines_amount_exact CHECK (amount_minor::numeric = quantity::numeric * unit_price_minor::numeric)
);
ALTER TABLE order_lines ADD CONSTRAINT order_lines_pkey PRIMARY KEY (tenant_id, order_id, position);
GRANT SELECT, INSERT ON order_lines TO countersign_runtime;

-- Each move of an order: from where, to where, by whom, under which operation. Only grows.
CREATE TABLE order_history (
    tenant_id             uuid        NOT NULL,
    id                    uuid        NOT NULL,
    order_id              uuid        NOT NULL,
    position              integer     NOT NULL,
    event                 text        NOT NULL,
    from_status           text,
    to_status             text        NOT NULL,
    detail                text,
    operation_id          uuid        NOT NULL,
    operation_fingerprint bytea       NOT NULL,
    moved_by              text        NOT NULL,
    moved_at              timestamptz NOT NULL,
    CONSTRAINT order_history_operation_key UNIQUE (tenant_id, operation_id),
    CONSTRAINT order_history_id_key UNIQUE (tenant_id, id),
    CONSTRAINT order_history_order_fkey FOREIGN KEY (tenant_id, order_id) REFERENCES orders (tenant_id, id),
    CONSTRAINT order_history_first_has_no_source CHECK ((position = 1) = (from_status IS NULL))
);
ALTER TABLE order_history ADD CONSTRAINT order_history_pkey PRIMARY KEY (tenant_id, order_id, position);
GRANT SELECT, INSERT ON order_history TO countersign_runtime;

-- An attempt to be paid. Its id is where the provider's idempotency key comes from, so however often
-- the provider is called for it, it charges once.
CREATE TABLE payment_attempts (
    tenant_id           uuid        NOT NULL,
    id                  uuid        NOT NULL,
    order_id            uuid        NOT NULL,
    ordinal             integer     NOT NULL,
    provider            text        NOT NULL,
    method              text        NOT NULL,
    status              text        NOT NULL,
    provider_payment_id text,
    failure             text,
    created_at          timestamptz NOT NULL,
    ended_at            timestamptz,
    updated_at          timestamptz NOT NULL,
    CONSTRAINT payment_attempts_ordinal_key UNIQUE (tenant_id, order_id, ordinal),
    CONSTRAINT payment_attempts_order_fkey FOREIGN KEY (tenant_id, order_id) REFERENCES orders (tenant_id, id),
    CONSTRAINT payment_attempts_status_known CHECK (status IN ('PENDING', 'SUCCEEDED', 'FAILED')),
    CONSTRAINT payment_attempts_ended_has_ended_at CHECK ((status = 'PENDING') = (ended_at IS NULL)),
    CONSTRAINT payment_attempts_failed_has_failure CHECK ((status = 'FAILED') = (failure IS NOT NULL))
);
CREATE INDEX payment_attempts_pending ON payment_attempts (created_at) WHERE status = 'PENDING';
-- One attempt at a time: a second could charge a second time.
CREATE UNIQUE INDEX payment_attempts_one_pending_key ON payment_attempts (tenant_id, order_id) WHERE status = 'PENDING';
ALTER TABLE payment_attempts ADD CONSTRAINT payment_attempts_pkey PRIMARY KEY (tenant_id, id);
GRANT SELECT, INSERT ON payment_attempts TO countersign_runtime;
GRANT UPDATE (status, provider_payment_id, failure, ended_at, updated_at) ON payment_attempts TO countersign_runtime;

-- Money that a provider took for an order.
CREATE TABLE captures (
    tenant_id           uuid        NOT NULL,
    provider            text        NOT NULL,
    provider_payment_id text        NOT NULL,
    order_id            uuid        NOT NULL,
    amount_minor        bigint      NOT NULL,
    currency            text        NOT NULL,
    state               text        NOT NULL,
    captured_at         timestamptz NOT NULL,
    updated_at          timestamptz NOT NULL,
    CONSTRAINT captures_order_fkey FOREIGN KEY (tenant_id, order_id) REFERENCES orders (tenant_id, id),
    CONSTRAINT captures_state_known CHECK (state IN ('APPLIED', 'REFUND_DUE', 'FLAGGED', 'RETURNED'))
);
CREATE INDEX captures_order ON captures (tenant_id, order_id);
-- An order is paid once.
CREATE UNIQUE INDEX captures_one_applied_key ON captures (tenant_id, order_id) WHERE state = 'APPLIED';
ALTER TABLE captures ADD CONSTRAINT captures_pkey PRIMARY KEY (tenant_id, provider, provider_payment_id);
GRANT SELECT, INSERT ON captures TO countersign_runtime;
GRANT UPDATE (state, updated_at) ON captures TO countersign_runtime;

CREATE TABLE refunds (
    tenant_id           uuid        NOT NULL,
    id                  uuid        NOT NULL,
    order_id            uuid        NOT NULL,
    provider            text        NOT NULL,
    provider_payment_id text        NOT NULL,
    provider_refund_id  text,
    amount_minor        bigint      NOT NULL,
    status              text        NOT NULL,
    failure             text,
    created_at          timestamptz NOT NULL,
    ended_at            timestamptz,
    updated_at          timestamptz NOT NULL,
    CONSTRAINT refunds_provider_refund_key UNIQUE (tenant_id, provider, provider_refund_id),
    CONSTRAINT refunds_order_fkey FOREIGN KEY (tenant_id, order_id) REFERENCES orders (tenant_id, id),
    CONSTRAINT refunds_capture_fkey FOREIGN KEY (tenant_id, provider, provider_payment_id) REFERENCES captures (tenant_id, provider, provider_payment_id),
    CONSTRAINT refunds_amount_positive CHECK (amount_minor > 0),
    CONSTRAINT refunds_status_known CHECK (status IN ('PENDING', 'SUCCEEDED', 'FAILED')),
    CONSTRAINT refunds_ended_has_ended_at CHECK ((status = 'PENDING') = (ended_at IS NULL)),
    CONSTRAINT refunds_succeeded_has_id CHECK (status <> 'SUCCEEDED' OR provider_refund_id IS NOT NULL)
);
CREATE INDEX refunds_order ON refunds (tenant_id, order_id);
CREATE INDEX refunds_pending ON refunds (created_at) WHERE status = 'PENDING';
ALTER TABLE refunds ADD CONSTRAINT refunds_pkey PRIMARY KEY (tenant_id, id);
GRANT SELECT, INSERT ON refunds TO countersign_runtime;
GRANT UPDATE (status, provider_refund_id, failure, ended_at, updated_at) ON refunds TO countersign_runtime;

-- The inbox of webhooks: raw, by provider and event. The tenant is known once what the event refers
-- to is; an event that refers to nothing is kept, and seen.
CREATE TABLE ops.payment_events (
    provider     text        NOT NULL,
    event_id     text        NOT NULL,
    kind         text        NOT NULL,
    reference    text        NOT NULL,
    tenant_id    uuid,
    payment_id   text        NOT NULL,
    refund_id    text        NOT NULL,
    amount_minor bigint      NOT NULL,
    currency     text        NOT NULL,
    received_at  timestamptz NOT NULL,
    processed_at timestamptz,
    result       text,
    conflicts    integer     NOT NULL,
    conflict     jsonb,
    CONSTRAINT payment_events_pkey PRIMARY KEY (provider, event_id),
    CONSTRAINT payment_events_processed_has_result CHECK ((processed_at IS NULL) = (result IS NULL))
);
CREATE INDEX payment_events_reference ON ops.payment_events (reference);
CREATE INDEX payment_events_unprocessed ON ops.payment_events (received_at) WHERE processed_at IS NULL;
CREATE INDEX payment_events_tenant ON ops.payment_events (tenant_id, received_at, provider, event_id);
GRANT SELECT, INSERT ON ops.payment_events TO countersign_runtime;
GRANT UPDATE (tenant_id, processed_at, result, conflicts, conflict) ON ops.payment_events TO countersign_runtime;

-- What the simulated provider knows: its side of the wire, kept where it survives a restart. The
-- product never reads it but through the provider's interface.
CREATE TABLE ops.simulated_payments (
    idempotency_key text        NOT NULL,
    payment_id      text        NOT NULL,
    reference       text        NOT NULL,
    method          text        NOT NULL,
    amount_minor    bigint      NOT NULL,
    currency        text        NOT NULL,
    status          text        NOT NULL,
    calls           integer     NOT NULL,
    created_at      timestamptz NOT NULL,
    CONSTRAINT simulated_payments_pkey PRIMARY KEY (idempotency_key),
    CONSTRAINT simulated_payments_payment_id_key UNIQUE (payment_id),
    CONSTRAINT simulated_payments_status_known CHECK (status IN ('NONE', 'CHARGED', 'DECLINED'))
);
CREATE INDEX simulated_payments_reference ON ops.simulated_payments (reference);
CREATE TABLE ops.simulated_refunds (
    idempotency_key text        NOT NULL,
    refund_id       text        NOT NULL,
    payment_id      text        NOT NULL,
    amount_minor    bigint      NOT NULL,
    created_at      timestamptz NOT NULL,
    CONSTRAINT simulated_refunds_pkey PRIMARY KEY (idempotency_key),
    CONSTRAINT simulated_refunds_refund_id_key UNIQUE (refund_id),
    CONSTRAINT simulated_refunds_payment_fkey FOREIGN KEY (payment_id) REFERENCES ops.simulated_payments (payment_id)
);
GRANT SELECT, INSERT ON ops.simulated_payments, ops.simulated_refunds TO countersign_runtime;
GRANT UPDATE (status, calls) ON ops.simulated_payments TO countersign_runtime;
GRANT UPDATE (amount_minor) ON ops.simulated_refunds TO countersign_runtime;
