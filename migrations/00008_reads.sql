-- +goose Up
-- Why: a page costs the same wherever it lies, under every filter that a list has. Each index has the
-- filter's columns first and then the list's order, so that a page reads its own rows and no others.
--
-- None begins with tenant_id: it would be made after the primary key, and a foreign key's check that
-- is planned while the table is empty would take it, and read every row of the tenant (see the first
-- migration). The partial one cannot serve such a check.
CREATE INDEX invoices_status ON invoices (status, tenant_id, id);
CREATE INDEX invoices_customer_status ON invoices (customer_id, status, tenant_id, id);
CREATE INDEX orders_status ON orders (status, tenant_id, id);
CREATE INDEX orders_customer_status ON orders (customer_id, status, tenant_id, id);
CREATE INDEX settlements_api_key ON settlements (api_key_id, tenant_id, id);
CREATE INDEX products_active ON products (tenant_id, id) WHERE active;
