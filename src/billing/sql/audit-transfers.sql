-- Transfers that differ from the journal.
SELECT id
FROM (
  SELECT id, 1 AS written, 0 AS told, from_account, to_account, amount, at FROM transfers
  UNION ALL
  SELECT id, 0, 1, account, counterparty, amount, at FROM movements WHERE kind = 'transfer'
) AS both_sides
GROUP BY id
HAVING SUM(written) <> 1 OR SUM(told) <> 1
  OR MIN(from_account) <> MAX(from_account) OR MIN(to_account) <> MAX(to_account) OR MIN(amount) <> MAX(amount) OR MIN(at) <> MAX(at)
ORDER BY id LIMIT 20
