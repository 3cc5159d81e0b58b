-- +goose Up
-- Why: whoever answers for orders works through those that need a person, oldest first.
CREATE INDEX orders_attention ON orders (tenant_id, id) WHERE attention IS NOT NULL;

-- The reconciler asks for a person where money is to be given back and nobody has: of orders from before
-- it did so at once, and of those that a server of before writes while both are at work.
CREATE INDEX captures_owed ON captures (provider_payment_id) WHERE state IN ('REFUND_DUE', 'FLAGGED');
