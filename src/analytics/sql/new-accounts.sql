-- Accounts that somebody got a key for, paid into, or bound a wallet to, since $1.
SELECT account, MIN(at) AS at FROM (
  SELECT account, created_at AS at FROM api_keys WHERE created_at >= $1
  UNION ALL
  SELECT account, created_at AS at FROM deposits WHERE account IS NOT NULL AND created_at >= $1
  UNION ALL
  SELECT account, bound_at AS at FROM wallets WHERE bound_at >= $1
) AS told GROUP BY account
