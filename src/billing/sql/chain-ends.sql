-- Every chain with its last group. The recursion steps from one chain to the next in the index, so it does not read the
-- groups between them.
WITH RECURSIVE chains (chain) AS (
  SELECT MIN(chain) FROM journal_batches
  UNION ALL
  SELECT (SELECT MIN(later.chain) FROM journal_batches AS later WHERE later.chain > chains.chain) FROM chains WHERE chains.chain IS NOT NULL
)
SELECT chain, (SELECT MAX(n) FROM journal_batches AS own WHERE own.chain = chains.chain) AS n FROM chains WHERE chain IS NOT NULL ORDER BY chain
