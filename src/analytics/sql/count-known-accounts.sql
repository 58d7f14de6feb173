-- The same as count-active-users, for the first day of each account.
INSERT INTO known_counts (since, wallet, users)
SELECT since, wallet, CAST(SUM(users) AS BIGINT) FROM (
  SELECT since, wallet, 1 AS users FROM known_users WHERE counted <> since
  UNION ALL
  SELECT counted, wallet, -1 FROM known_users WHERE counted <> since AND counted >= 0
) AS moved WHERE TRUE GROUP BY since, wallet
ON CONFLICT (since, wallet) DO UPDATE SET users = known_counts.users + excluded.users
