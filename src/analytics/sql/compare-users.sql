-- Finds days on which user_days has another number of users than usage_days has accounts.
SELECT day, CAST(SUM(users) AS BIGINT) AS users FROM (
  SELECT day, COUNT(*) AS users FROM user_days WHERE day >= $1 GROUP BY day
  UNION ALL
  SELECT day, -COUNT(DISTINCT account) FROM usage_days WHERE day >= $1 AND requests > 0 GROUP BY day
) AS told
GROUP BY day HAVING SUM(users) <> 0 LIMIT 20
