-- name: findAccount
SELECT id, CAST(SUM(available) AS BIGINT) AS available, CAST(SUM(locked) AS BIGINT) AS locked
FROM (
  SELECT id, available, locked FROM accounts WHERE id = $1
  UNION ALL
  SELECT account, available, locked FROM account_stripes WHERE account = $1
) AS parts
GROUP BY id

-- name: findFunded
SELECT 1 AS found WHERE EXISTS (SELECT 1 FROM funded_accounts WHERE id = $1)

-- name: findBudget
SELECT id, spent, locked FROM budget_sums WHERE id = $1

-- name: findLock
SELECT id, account, amount, parent, depth, lendable, lent, kept, prices, budget, state, price, provider, charged, fee, fee_bps, drawn, shortfall,
  created_at, expires_at, resolved_at, lock_detail, usage, detail
FROM locks WHERE id = $1

-- name: findLockToResolve
SELECT id, account, amount, prices, budget, state, expires_at,
  parent, NULLIF(depth, 0) AS depth, NULLIF(lendable, 0) AS lendable, NULLIF(lent, 0) AS lent, NULLIF(kept, 0) AS kept
FROM locks WHERE id = $1

-- name: findLockGap
-- The nearest used ids before and after an unused id.
SELECT (SELECT MAX(id) FROM locks WHERE id < $1) AS after, (SELECT MIN(id) FROM locks WHERE id > $1) AS before

-- name: findChildren
SELECT id, account, amount, parent, depth, lendable, lent, kept, prices, budget, state, price, provider, charged, fee, fee_bps, drawn, shortfall,
  created_at, expires_at, resolved_at, lock_detail, usage, detail
FROM locks WHERE parent = $1 ORDER BY created_at, id LIMIT $2

-- name: findTransfer
SELECT id, from_account, to_account, amount, memo, at FROM transfers WHERE id = $1

-- name: overdueLocks
SELECT id, account FROM locks WHERE state = 'held' AND expires_at <= $1 ORDER BY expires_at, id LIMIT $2

-- name: overdueUnkeptLocks
SELECT id, account FROM locks WHERE state = 'held' AND kept = 0 AND expires_at <= $1 ORDER BY expires_at, id LIMIT $2

-- name: spentOfBudgets
-- The sum that the budgets `$1:<period>` count as spent. No period begins with z. So in every collation their ids are
-- between $1 and `$1z`, and the primary key finds them.
SELECT CAST(COALESCE(SUM(spent), 0) AS BIGINT) AS spent FROM budget_sums
WHERE id >= $1 AND id < $1 || 'z' AND substr(id, 1, length($1) + 1) = $1 || ':'
