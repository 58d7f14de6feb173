INSERT INTO api_keys (hash, account, label, development, disabled, created_at, expires_at, spend_limit, limit_reset, allowed_services)
SELECT $1, $2, $3, $4, 0, $5, $6, $7, $8, $9
WHERE (SELECT COUNT(*) FROM api_keys WHERE account = $2) < $10
RETURNING *
