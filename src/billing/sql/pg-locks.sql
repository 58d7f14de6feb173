-- Needs no FOR UPDATE. A transaction changes a lock only while it holds the row of the lock's account, and the locks
-- above and under it have the same account. The update also checks the state again.
SELECT id, account, amount, prices, budget, state, expires_at,
  parent, NULLIF(depth, 0) AS depth, NULLIF(lendable, 0) AS lendable, NULLIF(lent, 0) AS lent, NULLIF(kept, 0) AS kept
FROM locks WHERE id = ANY ($1::text[])
