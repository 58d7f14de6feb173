-- name: putAccount
INSERT INTO accounts (id, available, locked) VALUES ($1, $2, $3)
ON CONFLICT (id) DO UPDATE SET available = excluded.available, locked = excluded.locked

-- name: putBudget
INSERT INTO budgets (id, spent, locked) VALUES ($1, $2, $3)
ON CONFLICT (id) DO UPDATE SET spent = excluded.spent, locked = excluded.locked

-- name: insertLock
INSERT INTO locks (id, account, amount, prices, budget, state, charged, fee, drawn, shortfall, created_at, expires_at, lock_detail)
VALUES ($1, $2, $3, $4, $5, 'held', 0, 0, 0, 0, $6, $7, $8)

-- name: insertNestedLock
INSERT INTO locks (id, account, amount, prices, budget, state, charged, fee, drawn, shortfall, created_at, expires_at, lock_detail,
  parent, depth, lendable, lent, kept)
VALUES ($1, $2, $3, $4, $5, 'held', 0, 0, 0, 0, $6, $7, $8, $9, $10, $11, $12, $13)

-- name: insertResolvedLock
INSERT INTO locks (id, account, amount, prices, budget, created_at, expires_at, lock_detail,
  state, price, provider, charged, fee, fee_bps, drawn, shortfall, resolved_at, usage, detail)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)

-- name: resolveLock
UPDATE locks SET state = $2, price = $3, provider = $4, charged = $5, fee = $6, fee_bps = $7, drawn = $8, shortfall = $9,
  resolved_at = $10, usage = $11, detail = $12
WHERE id = $1 AND state = 'held'

-- name: changeLock
UPDATE locks SET lent = $2, kept = $3, expires_at = $4 WHERE id = $1

-- name: insertTransfer
INSERT INTO transfers (id, from_account, to_account, amount, memo, at) VALUES ($1, $2, $3, $4, $5, $6)
