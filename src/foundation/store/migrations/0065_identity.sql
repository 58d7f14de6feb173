-- The identity of the gateways of this database: the id of the key that signs their receipts. One row.
CREATE TABLE identity (
  id BIGINT PRIMARY KEY CHECK (id = 1),
  receipt_key TEXT NOT NULL,
  since BIGINT NOT NULL
);
