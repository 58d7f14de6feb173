-- This row is a lock for what $1 names, which may have no row to lock. Of two transactions that insert it, the second
-- waits for the end of the first.
INSERT INTO consumers (account, label, created_at) VALUES ($1, '', 0)
