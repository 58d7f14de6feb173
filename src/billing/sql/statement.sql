-- name: resolvedCalls
-- Calls of account $1 that ended from $2 to before $3, the next $6 after the place ($4, $5), in the order in which they
-- began. Calls that are in archives may still be rows: nobody asks for their time.
SELECT id, account, state, provider, price, charged, fee, created_at, resolved_at, lock_detail, usage, detail FROM locks
WHERE account = $1 AND created_at < $3 AND created_at >= $4 AND (created_at > $4 OR id > $5) AND resolved_at >= $2 AND resolved_at < $3
ORDER BY created_at, id LIMIT $6

-- name: resolvedCallsOfDays
-- The same of those that ended on the UTC days $7, a JSON object of arrays, each with one day.
SELECT id, account, state, provider, price, charged, fee, created_at, resolved_at, lock_detail, usage, detail FROM locks
WHERE account = $1 AND created_at < $3 AND created_at >= $4 AND (created_at > $4 OR id > $5) AND resolved_at >= $2 AND resolved_at < $3
  AND resolved_at / 86400000 IN (SELECT CAST(value ->> 0 AS BIGINT) FROM json_each($7))
ORDER BY created_at, id LIMIT $6

-- name: chargedCalls
-- As resolvedCalls, of charged calls alone, with what a statement needs.
SELECT id, charged, created_at, resolved_at, lock_detail, detail FROM locks
WHERE account = $1 AND created_at < $3 AND created_at >= $4 AND (created_at > $4 OR id > $5) AND resolved_at >= $2 AND resolved_at < $3 AND charged > 0
ORDER BY created_at, id LIMIT $6

-- name: chargedSince
-- What account $1 was charged for calls that ended at $2 or later.
SELECT CAST(COALESCE(SUM(charged), 0) AS BIGINT) AS charged FROM locks WHERE account = $1 AND resolved_at >= $2 AND charged > 0

-- name: transfersSince
-- Transfers to and from account $1 (with its prefix) at $2 or later, in their order.
SELECT id, from_account, to_account, amount, memo, at FROM (
  SELECT * FROM transfers WHERE from_account = $1 AND at >= $2
  UNION ALL SELECT * FROM transfers WHERE to_account = $1 AND at >= $2 AND from_account <> $1) AS both_ways
ORDER BY at, id

-- name: refundsBetween
-- Refunds to account $1 (with its prefix) from $2 to before $3, with their calls as far as these are rows.
SELECT transfers.id, transfers.amount, transfers.memo, transfers.at, locks.resolved_at, locks.lock_detail, locks.detail FROM transfers LEFT JOIN locks ON locks.id = SUBSTR(transfers.id, 8)
WHERE transfers.to_account = $1 AND transfers.at >= $2 AND transfers.at < $3 AND transfers.id LIKE 'refund:%' ORDER BY transfers.at, transfers.id

-- name: escrowAccounts
-- Accounts of consumers after $1 (with its prefix).
SELECT id FROM accounts WHERE id > $1 AND id LIKE 'escrow:%' ORDER BY id LIMIT $2
