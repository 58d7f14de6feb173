-- The tables keep which record was noted outside of them last: an older copy of them is known by it.
UPDATE ledger_log SET noted = n RETURNING n, hash
