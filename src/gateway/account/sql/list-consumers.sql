SELECT * FROM consumers ORDER BY created_at, account LIMIT $1 OFFSET $2
