INSERT INTO admin_keys (hash, id, label, roles, created_at, expires_at)
SELECT $1, $2, $3, $4, $5, $6
WHERE (SELECT COUNT(*) FROM admin_keys WHERE revoked_at IS NULL) < $7
RETURNING *
