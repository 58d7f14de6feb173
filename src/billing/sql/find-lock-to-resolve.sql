SELECT id, account, amount, prices, budget, state, expires_at,
  parent, NULLIF(depth, 0) AS depth, NULLIF(lendable, 0) AS lendable, NULLIF(lent, 0) AS lent, NULLIF(kept, 0) AS kept
FROM locks WHERE id = $1
