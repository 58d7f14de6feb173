DELETE FROM idempotency WHERE (account, key) IN (SELECT account, key FROM idempotency WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)
RETURNING key
