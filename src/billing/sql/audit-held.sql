-- Accounts whose locked part differs from what their held locks hold.
SELECT account, CAST(SUM(locked) AS BIGINT) AS difference
FROM (
  SELECT id AS account, locked FROM accounts
  UNION ALL
  SELECT 'escrow:' || account, lent - amount FROM locks WHERE state = 'held'
) AS both_sides
GROUP BY account HAVING SUM(locked) <> 0
ORDER BY account LIMIT 20
