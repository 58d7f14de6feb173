-- Finds days for which known_counts and known_users have different numbers of accounts.
SELECT since AS day, CAST(SUM(ABS(users)) AS BIGINT) AS users FROM (
  SELECT since, wallet, SUM(users) AS users FROM (
    SELECT since, wallet, users FROM known_counts
    UNION ALL
    SELECT counted, wallet, -COUNT(*) FROM known_users WHERE counted >= 0 GROUP BY counted, wallet
  ) AS told GROUP BY since, wallet
) AS compared
WHERE users <> 0 GROUP BY since LIMIT 20
