-- The same as audit-budgets.sql, for PostgreSQL.
SELECT id, CAST(SUM(spent) AS BIGINT) AS spent, CAST(SUM(locked) AS BIGINT) AS locked
FROM (
  SELECT id, spent, locked FROM budgets
  UNION ALL
  SELECT one, -charged, CASE state WHEN 'held' THEN lent - amount ELSE 0 END
  FROM locks, unnest(string_to_array(budget, ' ')) AS one
  WHERE budget IS NOT NULL
) AS both_sides
GROUP BY id HAVING SUM(spent) <> 0 OR SUM(locked) <> 0
ORDER BY id LIMIT 20
