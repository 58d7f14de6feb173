-- name: accountTotals
-- An account has few transfers, but maybe millions of calls. So the cost of its calls is derived: paid in - paid out -
-- remaining.
SELECT
  CAST(COALESCE((SELECT SUM(amount) FROM transfers WHERE to_account = $1), 0) AS BIGINT) AS paid_in,
  CAST(COALESCE((SELECT SUM(amount) FROM transfers WHERE from_account = $1), 0) AS BIGINT) AS paid_out,
  CAST(COALESCE((SELECT available + locked FROM accounts WHERE id = $1), 0)
    + COALESCE((SELECT SUM(available + locked) FROM account_stripes WHERE account = $1), 0) AS BIGINT) AS remaining

-- name: accountMovements
-- The transfers of account $1 (with its prefix) by kind. The kind is the part of the id before the first colon; of what
-- was left at a close the memo says what became of it.
SELECT kind, CAST(SUM(amount) AS BIGINT) AS amount FROM (
  SELECT CASE
    WHEN id LIKE 'credit:%' THEN 'credited'
    WHEN id LIKE 'refund:%' THEN 'refunded'
    WHEN id LIKE 'deposit:%' OR id LIKE 'deposit-given:%' THEN 'deposited'
    WHEN id LIKE 'withdrawal-back:%' THEN 'returned'
    ELSE 'other_in' END AS kind, amount FROM transfers WHERE to_account = $1
  UNION ALL
  SELECT CASE
    WHEN id LIKE 'debit:%' THEN 'debited'
    WHEN id LIKE 'close:%' AND memo LIKE 'Written off: %' THEN 'written_off'
    WHEN id LIKE 'close:%' THEN 'paid_out'
    WHEN id LIKE 'withdrawal:%' THEN 'withdrawn'
    ELSE 'other_out' END AS kind, amount FROM transfers WHERE from_account = $1
) AS movements
GROUP BY kind

-- name: countHeldLocks
SELECT COUNT(*) AS held FROM locks WHERE state = 'held'

-- name: listMovements
-- The transfers of account $1 (with its prefix), the newest first, before the time $2 and the id $3.
SELECT id, from_account, to_account, amount, memo, at FROM (
  SELECT * FROM (
    SELECT * FROM transfers WHERE from_account = $1 AND (at, id) < ($2, $3) ORDER BY at DESC, id DESC LIMIT $4) AS taken
  UNION ALL
  SELECT * FROM (
    SELECT * FROM transfers WHERE to_account = $1 AND (at, id) < ($2, $3) ORDER BY at DESC, id DESC LIMIT $4) AS given
) AS movements
ORDER BY at DESC, id DESC LIMIT $4

-- name: listLocks
-- Calls of account $1 from position ($4, $5), inclusive, to position ($2, $3), exclusive; the newest first. $6: state,
-- or '' for all. lock_detail must match the patterns $7 and $8. lock_detail or detail must match the pattern $9. $11: 1 for
-- those that may have failed (see hasFailed), 0 for those that may not, else -1.
SELECT id, account, amount, parent, depth, lendable, lent, kept, prices, budget, state, price, provider, charged, fee, fee_bps, drawn, shortfall,
  created_at, expires_at, resolved_at, lock_detail, usage, detail
FROM locks
WHERE account = $1 AND created_at <= $2 AND (created_at < $2 OR id < $3) AND created_at >= $4 AND (created_at > $4 OR id >= $5)
  AND ($6 = '' OR state = $6) AND lock_detail LIKE $7 ESCAPE '\' AND lock_detail LIKE $8 ESCAPE '\'
  AND (lock_detail LIKE $9 ESCAPE '\' OR COALESCE(detail, '') LIKE $9 ESCAPE '\')
  AND ($11 = -1
    OR ($11 = 1 AND (state IN ('released', 'expired') OR (state = 'settled' AND detail LIKE '%"outcome":"free"%')))
    OR ($11 = 0 AND (state IN ('held', 'settled') OR detail LIKE '%"outcome":"continued"%' OR lock_detail LIKE '%"run":true%')))
ORDER BY created_at DESC, id DESC LIMIT $10

-- name: listLocksSlice
-- Takes the calls of account $1 before position ($2, $3), newest first and not older than $4, and skips $5 of them.
-- Gives the position of the next call; no row if fewer calls are left.
SELECT created_at, id FROM locks
WHERE account = $1 AND created_at <= $2 AND (created_at < $2 OR id < $3) AND created_at >= $4
ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET $5

-- name: listLocksOfProvider
-- Resolved calls of provider $1 before position ($2, $3), the newest first.
SELECT id, account, amount, parent, depth, lendable, lent, kept, prices, budget, state, price, provider, charged, fee, fee_bps, drawn, shortfall,
  created_at, expires_at, resolved_at, lock_detail, usage, detail
FROM locks
WHERE provider = $1 AND resolved_at <= $2 AND (resolved_at < $2 OR id < $3)
ORDER BY resolved_at DESC, id DESC LIMIT $4

-- name: listPayouts
SELECT paid.id, paid.amount, paid.memo, paid.at, undone.at AS undone_at, undone.memo AS undone_memo
FROM transfers paid LEFT JOIN transfers undone ON undone.id = 'payout-undone:' || SUBSTR(paid.id, 8)
WHERE paid.from_account = $1 AND paid.to_account = $2 AND paid.id LIKE 'payout:%'
ORDER BY paid.at DESC, paid.id DESC LIMIT $3 OFFSET $4

-- name: listRefunds
-- What was taken from the earnings $1 (with their prefix) for refunds, the newest first.
SELECT id, amount, memo, at FROM transfers
WHERE from_account = $1 AND id LIKE 'refund-share:%'
ORDER BY at DESC, id DESC LIMIT $2 OFFSET $3
