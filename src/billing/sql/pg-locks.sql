-- Without FOR UPDATE: a lock is changed only by whoever holds its account's row, and the update checks the state again.
SELECT id, account, amount, prices, budget, state, created_at, expires_at FROM locks WHERE id = ANY ($1::text[])
