-- Locks that differ from the journal. The journal must open each lock once. It must resolve it once, with the state and
-- the amounts of the lock, unless the lock is held. The amount of a resolution is what the lock held: its amount minus
-- what it had lent. UNION ALL and GROUP BY need one pass over each side. A full join would compare every lock with
-- every row.
SELECT id, MAX(lock_state) AS state, SUM(opened) AS opened, SUM(resolved) AS resolved
FROM (
  SELECT id, 1 AS lock_rows, state AS lock_state, state, 0 AS opened, 0 AS resolved, 'escrow:' || account AS account, amount,
    CASE state WHEN 'held' THEN NULL ELSE amount - lent END AS held, charged, fee, drawn, COALESCE(price, '') AS price, COALESCE('earnings:' || provider, '') AS counterparty, created_at AS opened_at, resolved_at
  FROM locks
  UNION ALL
  SELECT id, 0, NULL, NULL, 1, 0, account, amount, NULL, -charged, -fee, -drawn, NULL, NULL, at, NULL
  FROM movements WHERE kind = 'lock'
  UNION ALL
  SELECT id, 0, NULL, CASE kind WHEN 'settle' THEN 'settled' WHEN 'release' THEN 'released' WHEN 'expire' THEN 'expired' ELSE kind END,
    0, 1, account, NULL, amount, -charged, -fee, -drawn, COALESCE(price, ''), COALESCE(counterparty, ''), NULL, at
  FROM movements WHERE kind NOT IN ('lock', 'transfer', 'lend', 'return')
) AS told
GROUP BY id
HAVING SUM(lock_rows) <> 1 OR SUM(opened) <> 1
  OR SUM(resolved) <> CASE MAX(lock_state) WHEN 'held' THEN 0 ELSE 1 END
  OR MIN(state) <> MAX(state) OR MIN(account) <> MAX(account) OR MIN(amount) <> MAX(amount) OR MIN(held) <> MAX(held)
  OR SUM(charged) <> 0 OR SUM(fee) <> 0 OR SUM(drawn) <> 0
  OR MIN(price) <> MAX(price) OR MIN(counterparty) <> MAX(counterparty)
  OR MIN(opened_at) <> MAX(opened_at) OR MIN(resolved_at) <> MAX(resolved_at)
ORDER BY id LIMIT 20
