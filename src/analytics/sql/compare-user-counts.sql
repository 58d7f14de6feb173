-- Finds days for which user_counts and user_days have different numbers of users.
SELECT day, CAST(SUM(ABS(users)) AS BIGINT) AS users FROM (
  SELECT day, previous, SUM(users) AS users FROM (
    SELECT day, previous, users FROM user_counts
    UNION ALL
    SELECT day, counted, -COUNT(*) FROM user_days WHERE counted >= -1 GROUP BY day, counted
  ) AS told GROUP BY day, previous
) AS compared
WHERE users <> 0 GROUP BY day LIMIT 20
