-- Locks that ended under a parent with a rest, those of one parent together and in their order. A parent that was held then got the rest back; what
-- ended in the same millisecond is told by what the parent has lent: all that was drawn (drawn_from) less what it got back.
SELECT child.id, 'escrow:' || child.account AS account, child.parent, child.amount - child.lent - child.charged AS rest, child.resolved_at AS at,
  parent.lent, (SELECT SUM(amount) FROM locks AS drawn WHERE drawn.parent = parent.id) AS drawn_from,
  CASE WHEN parent.state = 'held' OR child.resolved_at < parent.resolved_at THEN 1 WHEN child.resolved_at > parent.resolved_at THEN -1 ELSE 0 END AS given,
  EXISTS (SELECT 1 FROM told WHERE told.id = child.id AND told.kind = 'return') AS is_told
FROM locks AS child JOIN locks AS parent ON parent.id = child.parent
WHERE child.state <> 'held' AND child.amount - child.lent - child.charged > 0
ORDER BY child.parent, given DESC, child.resolved_at, child.id
