-- Locks that ended with a rest under a parent, grouped by parent and in the order of their ends. A parent that was held
-- at that time got the rest back. If both ended in the same millisecond, `lent` of the parent decides: it is all that
-- was drawn (drawn_from) minus what the parent got back.
SELECT child.id, 'escrow:' || child.account AS account, child.parent, child.amount - child.lent - child.charged AS rest, child.resolved_at AS at,
  parent.lent, (SELECT SUM(amount) FROM locks AS drawn WHERE drawn.parent = parent.id) AS drawn_from,
  CASE WHEN parent.state = 'held' OR child.resolved_at < parent.resolved_at THEN 1 WHEN child.resolved_at > parent.resolved_at THEN -1 ELSE 0 END AS given,
  EXISTS (SELECT 1 FROM told WHERE told.id = child.id AND told.kind = 'return') AS is_told
FROM locks AS child JOIN locks AS parent ON parent.id = child.parent
WHERE child.state <> 'held' AND child.amount - child.lent - child.charged > 0
ORDER BY child.parent, given DESC, child.resolved_at, child.id
