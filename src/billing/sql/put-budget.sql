INSERT INTO budgets (id, spent, locked) VALUES ($1, $2, $3)
ON CONFLICT (id) DO UPDATE SET spent = excluded.spent, locked = excluded.locked
