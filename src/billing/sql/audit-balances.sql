-- Accounts whose balance is not the sum of their entries.
SELECT account, CAST(SUM(available) AS BIGINT) AS available, CAST(SUM(locked) AS BIGINT) AS locked
FROM (
  SELECT id AS account, available, locked FROM accounts
  UNION ALL
  SELECT account, -available, -locked FROM entries
) AS both_sides
GROUP BY account HAVING SUM(available) <> 0 OR SUM(locked) <> 0
ORDER BY account LIMIT 20
