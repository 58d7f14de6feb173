-- name: rebuildForgetSums
-- The daily sums were made from the lost journal. They are built again, see the room analytics.
DELETE FROM analytics_cursors

-- name: rebuildMovements
-- The movements of every lock and transfer that the tables imply and the journal lacks: kind, id, account,
-- counterparty, amount, charged, fee, drawn, price, at. `return` movements come from rebuild-returns.
SELECT 'transfer' AS kind, id, from_account AS account, to_account AS counterparty, amount, 0 AS charged, 0 AS fee, 0 AS drawn, NULL AS price, at
FROM transfers WHERE at >= (SELECT COALESCE(MAX(ends_at), 0) FROM archives) AND NOT EXISTS (SELECT 1 FROM told WHERE told.id = transfers.id AND told.kind = 'transfer')
UNION ALL
SELECT 'lend', id, 'escrow:' || account, parent, amount, 0, 0, 0, NULL, created_at
FROM live_locks WHERE parent IS NOT NULL AND NOT EXISTS (SELECT 1 FROM told WHERE told.id = live_locks.id AND told.kind = 'lend')
UNION ALL
SELECT 'lock', id, 'escrow:' || account, NULL, amount, 0, 0, 0, NULL, created_at
FROM live_locks WHERE NOT EXISTS (SELECT 1 FROM told WHERE told.id = live_locks.id AND told.kind = 'lock')
UNION ALL
SELECT CASE state WHEN 'settled' THEN 'settle' WHEN 'released' THEN 'release' ELSE 'expire' END, id, 'escrow:' || account, 'earnings:' || provider,
  amount - lent, charged, fee, drawn, price, resolved_at
FROM live_locks WHERE state <> 'held' AND NOT EXISTS (SELECT 1 FROM told WHERE told.id = live_locks.id AND told.kind IN ('settle', 'release', 'expire'))

-- name: rebuildArchivedPosition
-- The new log begins after the newest archive.
UPDATE archived_chains SET position = 0 WHERE chain = $1

-- name: rebuildPosition
UPDATE ledger_log SET position = 0, n = $1, hash = $2, noted = $1

-- name: rebuildReturns
-- Locks that ended with a rest under a parent, grouped by parent and in the order of their ends. A parent that was held
-- at that time got the rest back. If both ended in the same millisecond, `lent` of the parent decides: it is all that
-- was drawn (drawn_from) minus what the parent got back.
SELECT child.id, 'escrow:' || child.account AS account, child.parent, child.amount - child.lent - child.charged AS rest, child.resolved_at AS at,
  parent.lent, (SELECT SUM(amount) FROM live_locks AS drawn WHERE drawn.parent = parent.id) AS drawn_from,
  CASE WHEN parent.state = 'held' OR child.resolved_at < parent.resolved_at THEN 1 WHEN child.resolved_at > parent.resolved_at THEN -1 ELSE 0 END AS handed_back,
  EXISTS (SELECT 1 FROM told WHERE told.id = child.id AND told.kind = 'return') AS is_told
FROM live_locks AS child JOIN live_locks AS parent ON parent.id = child.parent
WHERE child.state <> 'held' AND child.amount - child.lent - child.charged > 0
ORDER BY child.parent, handed_back DESC, child.resolved_at, child.id

-- name: rebuildToldIndex
CREATE INDEX temp.told_key ON told (id, kind)

-- name: rebuildToldTable
-- The movements that the journal already has, from before the log, and those that are in an archive while their calls
-- are not.
CREATE TEMP TABLE told AS SELECT id, kind FROM journal
UNION ALL
SELECT id, kind FROM archived_movements WHERE archive = (SELECT MAX(number) FROM archives)
