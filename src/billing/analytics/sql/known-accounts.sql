-- name: newAccounts
-- Accounts that got a key, a deposit or a bound wallet since $1.
SELECT account, MIN(at) AS at FROM (
  SELECT account, created_at AS at FROM api_keys WHERE created_at >= $1
  UNION ALL
  SELECT account, created_at AS at FROM deposits WHERE account IS NOT NULL AND created_at >= $1
  UNION ALL
  SELECT account, bound_at AS at FROM wallets WHERE bound_at >= $1
) AS told GROUP BY account

-- name: addKnownUsers
-- An account that is already known keeps its first day, unless the new day is earlier.
INSERT INTO known_users (account_hash, wallet, since)
SELECT CAST(r.value ->> 0 AS BIGINT), CAST(r.value ->> 1 AS BIGINT), CAST(r.value ->> 2 AS BIGINT)
FROM json_each($1) AS r WHERE TRUE
ON CONFLICT (account_hash) DO UPDATE SET since = excluded.since WHERE excluded.since < known_users.since

-- name: noteAccounts
UPDATE analytics_state SET accounts_at = $1 WHERE id = 1

-- name: holdState
-- Locks the row, so that transactions that count run one after the other.
UPDATE analytics_state SET accounts_at = accounts_at WHERE id = 1

-- name: countKnownAccounts
-- The same as count-active-users, for the first day of each account.
INSERT INTO known_counts (since, wallet, users)
SELECT since, wallet, CAST(SUM(users) AS BIGINT) FROM (
  SELECT since, wallet, 1 AS users FROM known_users WHERE counted <> since
  UNION ALL
  SELECT counted, wallet, -1 FROM known_users WHERE counted <> since AND counted >= 0
) AS moved WHERE TRUE GROUP BY since, wallet
ON CONFLICT (since, wallet) DO UPDATE SET users = known_counts.users + excluded.users

-- name: noteCountedAccounts
UPDATE known_users SET counted = since WHERE counted <> since
