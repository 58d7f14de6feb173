-- Without FOR UPDATE: a lock is changed only by whoever holds its account's row, and the update checks the state again.
SELECT id, account, amount, prices, budget, state, price, provider, charged, fee, drawn, shortfall,
  created_at, expires_at, resolved_at, lock_detail, usage, detail
FROM locks WHERE id = ANY ($1::text[])
