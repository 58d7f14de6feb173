INSERT INTO accounts (id, available, locked) VALUES ($1, $2, $3)
ON CONFLICT (id) DO UPDATE SET available = excluded.available, locked = excluded.locked
