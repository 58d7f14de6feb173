-- Accounts that got a key, a deposit or a bound wallet since $1.
SELECT account, MIN(at) AS at FROM (
  SELECT account, created_at AS at FROM api_keys WHERE created_at >= $1
  UNION ALL
  SELECT account, created_at AS at FROM deposits WHERE account IS NOT NULL AND created_at >= $1
  UNION ALL
  SELECT account, bound_at AS at FROM wallets WHERE bound_at >= $1
) AS told GROUP BY account
