-- The movements of every lock and transfer that the tables imply and the journal lacks: kind, id, account,
-- counterparty, amount, charged, fee, drawn, price, at. `return` movements come from rebuild-returns.
SELECT 'transfer' AS kind, id, from_account AS account, to_account AS counterparty, amount, 0 AS charged, 0 AS fee, 0 AS drawn, NULL AS price, at
FROM transfers WHERE NOT EXISTS (SELECT 1 FROM told WHERE told.id = transfers.id AND told.kind = 'transfer')
UNION ALL
SELECT 'lend', id, 'escrow:' || account, parent, amount, 0, 0, 0, NULL, created_at
FROM locks WHERE parent IS NOT NULL AND NOT EXISTS (SELECT 1 FROM told WHERE told.id = locks.id AND told.kind = 'lend')
UNION ALL
SELECT 'lock', id, 'escrow:' || account, NULL, amount, 0, 0, 0, NULL, created_at
FROM locks WHERE NOT EXISTS (SELECT 1 FROM told WHERE told.id = locks.id AND told.kind = 'lock')
UNION ALL
SELECT CASE state WHEN 'settled' THEN 'settle' WHEN 'released' THEN 'release' ELSE 'expire' END, id, 'escrow:' || account, 'earnings:' || provider,
  amount - lent, charged, fee, drawn, price, resolved_at
FROM locks WHERE state <> 'held' AND NOT EXISTS (SELECT 1 FROM told WHERE told.id = locks.id AND told.kind IN ('settle', 'release', 'expire'))
