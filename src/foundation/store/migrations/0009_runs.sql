-- Locks under a lock. Calls under a running call take their money from the lendable part of its lock, so one cap bounds
-- all of them.
ALTER TABLE locks ADD COLUMN parent TEXT;
-- The number of locks above this one.
ALTER TABLE locks ADD COLUMN depth BIGINT NOT NULL DEFAULT 0;
-- The part of the amount that locks under this one may draw. Its own settlement cannot charge it.
ALTER TABLE locks ADD COLUMN lendable BIGINT NOT NULL DEFAULT 0
  CONSTRAINT locks_lendable CHECK (lendable >= 0 AND lendable <= amount AND charged - drawn <= amount - lendable);
-- The part of `lendable` that the locks under this one hold or were charged. It does not change after this lock is
-- resolved.
ALTER TABLE locks ADD COLUMN lent BIGINT NOT NULL DEFAULT 0
  CONSTRAINT locks_lent CHECK (lent >= 0 AND lent <= lendable);
-- 1 for a lock that belongs to a task. It outlives its call and its process.
ALTER TABLE locks ADD COLUMN kept BIGINT NOT NULL DEFAULT 0
  CONSTRAINT locks_kept CHECK (kept IN (0, 1));
CREATE INDEX locks_children ON locks (parent, created_at, id) WHERE parent IS NOT NULL;

-- As before, and with the kinds `lend` (a lock draws from its parent) and `return` (it gives back). They have no second
-- account, because the other side is a lock.
DROP VIEW entries;
CREATE VIEW entries AS
  SELECT chain, batch, position, kind, id, account,
    CASE kind
      WHEN 'lock' THEN -amount
      WHEN 'return' THEN -amount
      WHEN 'settle' THEN amount - charged
      WHEN 'transfer' THEN -amount
      ELSE amount
    END AS available,
    CASE kind WHEN 'lock' THEN amount WHEN 'return' THEN amount WHEN 'transfer' THEN 0 ELSE -amount END AS locked
  FROM journal
  UNION ALL
  SELECT chain, batch, position, kind, id, counterparty,
    CASE kind WHEN 'settle' THEN charged - fee ELSE amount END, 0
  FROM journal WHERE kind IN ('settle', 'transfer')
  UNION ALL
  SELECT chain, batch, position, kind, id, 'fees', fee, 0
  FROM journal WHERE kind = 'settle' AND fee <> 0;
