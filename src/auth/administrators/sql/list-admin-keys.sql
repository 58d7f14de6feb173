SELECT * FROM admin_keys ORDER BY created_at, hash LIMIT $1 OFFSET $2
