-- +goose Up
-- Why: an allocation's cost. The revisions of the parties are read, in the statement that numbers, from
-- the parties' rows of now; each revision was written with its row, and none is ever deleted. Their
-- foreign keys could not fail, and their checks took a fifth of an allocation. The doctor looks.
ALTER TABLE invoices DROP CONSTRAINT invoices_seller_fkey, DROP CONSTRAINT invoices_buyer_fkey;
