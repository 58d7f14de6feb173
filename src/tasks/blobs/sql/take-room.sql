INSERT INTO blob_rooms (id, account, files, expires_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at
