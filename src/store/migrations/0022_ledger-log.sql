-- How far the tables of the embedded database have followed its log, one row. PostgreSQL has no log and does not use it.
CREATE TABLE ledger_log (
  id BIGINT PRIMARY KEY,
  -- In bytes from the log's beginning, and the record that ends there. The log goes on with the journal's hash chain.
  position BIGINT NOT NULL,
  n BIGINT NOT NULL,
  hash TEXT NOT NULL,
  -- n as it was when journal-head.json was written last: an older copy of the tables is known by it.
  noted BIGINT NOT NULL,
  CONSTRAINT ledger_log_one CHECK (id = 1)
);
INSERT INTO ledger_log (id, position, n, hash, noted)
SELECT 1, 0, COALESCE(MAX(n), 0),
  COALESCE((SELECT hash FROM journal_batches WHERE chain = 'main' ORDER BY n DESC LIMIT 1), '0000000000000000000000000000000000000000000000000000000000000000'),
  COALESCE(MAX(n), 0)
FROM journal_batches WHERE chain = 'main';
