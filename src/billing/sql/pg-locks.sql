-- Without FOR UPDATE: a lock is changed only by whoever holds its account's row, which the locks above and under it share, and the update
-- checks the state again.
SELECT id, account, amount, prices, budget, state, expires_at,
  parent, NULLIF(depth, 0) AS depth, NULLIF(lendable, 0) AS lendable, NULLIF(lent, 0) AS lent, NULLIF(kept, 0) AS kept
FROM locks WHERE id = ANY ($1::text[])
