-- A maker may have no row of its own. Of two transactions that insert this one, the second waits for the end of the first.
INSERT INTO consumers (account, label, created_at) VALUES ($1, '', 0)
