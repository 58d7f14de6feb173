-- The signed legs of every movement. `available` and `locked` are changes of the account, and over all rows they sum to
-- 0. `lend` (a lock draws from its parent) and `return` (it gives back) have no second account: the other side is a
-- lock.
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
