-- newcomers: users who were not active earlier in the range. $3: hash of an account that does not count.
SELECT day, CAST(SUM(users) AS BIGINT) AS users, CAST(SUM(CASE WHEN previous < $1 THEN users ELSE 0 END) AS BIGINT) AS newcomers FROM (
  SELECT day, previous, users FROM user_counts WHERE day BETWEEN $1 AND $2
  UNION ALL
  SELECT day, counted, -1 FROM user_days WHERE account_hash = $3 AND day BETWEEN $1 AND $2 AND counted >= -1
) AS told GROUP BY day HAVING SUM(users) > 0
