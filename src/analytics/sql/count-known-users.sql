SELECT COALESCE(CAST(SUM(users) AS BIGINT), 0) AS users, COALESCE(CAST(SUM(users * wallet) AS BIGINT), 0) AS wallets FROM (
  SELECT wallet, users FROM known_counts WHERE since <= $1
  UNION ALL
  SELECT wallet, -1 FROM known_users WHERE account_hash = $2 AND counted BETWEEN 0 AND $1
) AS told
