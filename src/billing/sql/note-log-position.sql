-- Stores the number of the last record that was noted outside of the database. It shows later whether the tables were
-- replaced by an older copy.
UPDATE ledger_log SET noted = n RETURNING n, hash
