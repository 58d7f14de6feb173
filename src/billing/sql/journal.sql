-- name: chainHead
SELECT n, hash FROM journal_batches WHERE chain = $1 ORDER BY n DESC LIMIT 1

-- name: chainEnds
-- Every chain with its last group. The recursion steps from one chain to the next in the index, so it does not read the
-- groups between them.
WITH RECURSIVE chains (chain) AS (
  SELECT MIN(chain) FROM journal_batches
  UNION ALL
  SELECT (SELECT MIN(later.chain) FROM journal_batches AS later WHERE later.chain > chains.chain) FROM chains WHERE chains.chain IS NOT NULL
)
SELECT chain, (SELECT MAX(n) FROM journal_batches AS own WHERE own.chain = chains.chain) AS n FROM chains WHERE chain IS NOT NULL ORDER BY chain

-- name: archivedEnds
-- The last archived group of each chain.
SELECT chain, n, hash FROM archived_chains WHERE archive = (SELECT MAX(number) FROM archives)

-- name: findBatch
SELECT hash FROM journal_batches WHERE chain = $1 AND n = $2

-- name: groupsAfter
SELECT n, movements FROM journal_batches WHERE chain = $1 AND n > $2 ORDER BY n LIMIT $3

-- name: journalResolved
-- The locks that these old batches resolve. Their movements are rows of `journal`.
SELECT batch, id FROM journal
WHERE chain = $1 AND batch > $2 AND batch <= $3 AND kind IN ('settle', 'release', 'expire')
ORDER BY batch, position

-- name: insertJournal
INSERT INTO journal (chain, batch, position, kind, id, account, counterparty, amount, charged, fee, drawn, price, at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)

-- name: insertBatch
INSERT INTO journal_batches (chain, n, at, count, prev, hash) VALUES ($1, $2, $3, $4, $5, $6)

-- name: logPosition
SELECT position, n, hash, noted FROM ledger_log

-- name: noteLogPosition
-- Stores the number of the last record that was noted outside of the database. It shows later whether the tables were
-- replaced by an older copy.
UPDATE ledger_log SET noted = n RETURNING n, hash

-- name: pgCommitDurably
SELECT set_config('synchronous_commit', 'on', true)

-- name: pgWriteSomething
-- A message in the log of the server that nobody reads. It needs no table.
SELECT CAST(pg_logical_emit_message(true, 'tollgate', '') AS TEXT) AS position
