SELECT * FROM api_keys WHERE account = $1 ORDER BY created_at, hash LIMIT $2 OFFSET $3
