INSERT INTO blob_rooms (id, account, files, expires_at, bytes, free) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at
