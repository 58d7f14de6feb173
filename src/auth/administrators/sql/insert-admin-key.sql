INSERT INTO admin_keys (hash, id, label, roles, created_at, expires_at)
SELECT $1, $2, $3, $4, $5, $6
WHERE (SELECT COUNT(*) FROM admin_keys WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $5)) < $7
RETURNING *
