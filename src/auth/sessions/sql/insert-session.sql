INSERT INTO web_sessions (id, account, signed_in_by, key_hash, wallet, client, created_at, seen_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $7, $8)
RETURNING *
