-- Signed legs of every movement: available and locked are changes of that account; over all rows both together sum to 0. What a lock draws from
-- its parent (lend) and gives back to it (return) has a lock on its other side, not an account.
CREATE TEMP VIEW entries AS
SELECT chain, batch, position, kind, id, account,
  CASE kind
    WHEN 'lock' THEN -amount
    WHEN 'return' THEN -amount
    WHEN 'settle' THEN amount - charged
    WHEN 'transfer' THEN -amount
    ELSE amount
  END AS available,
  CASE kind WHEN 'lock' THEN amount WHEN 'return' THEN amount WHEN 'transfer' THEN 0 ELSE -amount END AS locked
FROM movements
UNION ALL
SELECT chain, batch, position, kind, id, counterparty,
  CASE kind WHEN 'settle' THEN charged - fee ELSE amount END, 0
FROM movements WHERE kind IN ('settle', 'transfer')
UNION ALL
SELECT chain, batch, position, kind, id, 'fees', fee, 0
FROM movements WHERE kind = 'settle' AND fee <> 0
