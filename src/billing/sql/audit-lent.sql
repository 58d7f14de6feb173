-- Locks whose `lent` differs from what the locks under them hold or were charged, or whose lent or charged parts exceed
-- what their amount allows.
SELECT id, CAST(SUM(lent) AS BIGINT) AS lent, MAX(misfit) AS misfit
FROM (
  SELECT id, lent, CASE WHEN lent < 0 OR lent > lendable OR lendable > amount OR charged - drawn > amount - lendable THEN 1 ELSE 0 END AS misfit
  FROM locks WHERE lendable <> 0 OR lent <> 0
  UNION ALL
  SELECT parent, -amount, 0 FROM locks WHERE parent IS NOT NULL
  UNION ALL
  SELECT counterparty, amount, 0 FROM movements WHERE kind = 'return'
) AS both_sides
GROUP BY id HAVING SUM(lent) <> 0 OR MAX(misfit) <> 0
ORDER BY id LIMIT 20
