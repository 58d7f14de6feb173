-- How far the tables of the embedded database have followed its log. One row. PostgreSQL has no log and does not use
-- this table.
CREATE TABLE ledger_log (
  id BIGINT PRIMARY KEY,
  -- Bytes from the beginning of the log, and the record that ends there. The log continues the journal's hash chain.
  position BIGINT NOT NULL,
  n BIGINT NOT NULL,
  hash TEXT NOT NULL,
  -- The value of n when journal-head.json was last written. It shows whether the tables were replaced by an older copy.
  noted BIGINT NOT NULL,
  CONSTRAINT ledger_log_one CHECK (id = 1)
);
INSERT INTO ledger_log (id, position, n, hash, noted)
SELECT 1, 0, COALESCE(MAX(n), 0),
  COALESCE((SELECT hash FROM journal_batches WHERE chain = 'main' ORDER BY n DESC LIMIT 1), '0000000000000000000000000000000000000000000000000000000000000000'),
  COALESCE(MAX(n), 0)
FROM journal_batches WHERE chain = 'main';
