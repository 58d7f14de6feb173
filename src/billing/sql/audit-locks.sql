-- Locks that the journal does not tell: each was opened once, and resolved once in the way and with the amounts that the lock says, or is held.
SELECT COALESCE(locks.id, told.id) AS id, locks.state, told.opened, told.resolved, told.resolution
FROM locks FULL JOIN (
  SELECT id,
    COUNT(CASE kind WHEN 'lock' THEN 1 END) AS opened,
    COUNT(CASE kind WHEN 'lock' THEN NULL ELSE 1 END) AS resolved,
    MAX(CASE kind WHEN 'settle' THEN 'settled' WHEN 'release' THEN 'released' WHEN 'expire' THEN 'expired' END) AS resolution,
    MIN(account) AS account, MAX(account) AS last_account,
    MIN(amount) AS amount, MAX(amount) AS last_amount,
    CAST(SUM(charged) AS BIGINT) AS charged, CAST(SUM(fee) AS BIGINT) AS fee, CAST(SUM(drawn) AS BIGINT) AS drawn,
    MAX(price) AS price, MAX(counterparty) AS counterparty,
    MIN(CASE kind WHEN 'lock' THEN at END) AS opened_at, MAX(CASE kind WHEN 'lock' THEN NULL ELSE at END) AS resolved_at
  FROM journal WHERE kind <> 'transfer' GROUP BY id
) AS told ON told.id = locks.id
WHERE locks.id IS NULL OR told.id IS NULL
  OR told.opened <> 1
  OR told.resolved <> CASE locks.state WHEN 'held' THEN 0 ELSE 1 END
  OR COALESCE(told.resolution, 'held') <> locks.state
  OR told.account <> 'escrow:' || locks.account OR told.last_account <> told.account
  OR told.amount <> locks.amount OR told.last_amount <> told.amount
  OR told.charged <> locks.charged OR told.fee <> locks.fee OR told.drawn <> locks.drawn
  OR COALESCE(told.price, '') <> COALESCE(locks.price, '')
  OR COALESCE(told.counterparty, '') <> COALESCE('earnings:' || locks.provider, '')
  OR told.opened_at <> locks.created_at OR COALESCE(told.resolved_at, 0) <> COALESCE(locks.resolved_at, 0)
ORDER BY 1 LIMIT 20
