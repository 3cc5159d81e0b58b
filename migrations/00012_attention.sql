-- +goose Up
-- Why: whoever answers for orders works through those that need a person, oldest first.
CREATE INDEX orders_attention ON orders (tenant_id, id) WHERE attention IS NOT NULL;

-- Money that is to be given back needs a person; until now only its capture said so.
UPDATE orders
SET attention = 'a payment is to be given back', updated_at = greatest(now(), updated_at + interval '1 microsecond')
WHERE attention IS NULL
  AND EXISTS (SELECT FROM captures c WHERE c.tenant_id = orders.tenant_id AND c.order_id = orders.id AND c.state = 'REFUND_DUE');
