-- Calls of account $1 from position ($4, $5), inclusive, to position ($2, $3), exclusive; the newest first. $6: state,
-- or '' for all. lock_detail must match the patterns $7 and $8. lock_detail or detail must match the pattern $9.
SELECT id, account, amount, parent, depth, lendable, lent, kept, prices, budget, state, price, provider, charged, fee, fee_bps, drawn, shortfall,
  created_at, expires_at, resolved_at, lock_detail, usage, detail
FROM locks
WHERE account = $1 AND created_at <= $2 AND (created_at < $2 OR id < $3) AND created_at >= $4 AND (created_at > $4 OR id >= $5)
  AND ($6 = '' OR state = $6) AND lock_detail LIKE $7 ESCAPE '\' AND lock_detail LIKE $8 ESCAPE '\'
  AND (lock_detail LIKE $9 ESCAPE '\' OR COALESCE(detail, '') LIKE $9 ESCAPE '\')
ORDER BY created_at DESC, id DESC LIMIT $10
