-- name: insertAdminKey
INSERT INTO admin_keys (hash, id, label, roles, created_at, expires_at)
SELECT $1, $2, $3, $4, $5, $6
WHERE (SELECT COUNT(*) FROM admin_keys WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $5)) < $7
RETURNING *

-- name: findAdminKey
SELECT * FROM admin_keys WHERE hash = $1

-- name: listAdminKeys
SELECT * FROM admin_keys ORDER BY created_at, hash LIMIT $1 OFFSET $2

-- name: revokeAdminKey
UPDATE admin_keys SET revoked_at = COALESCE(revoked_at, $2) WHERE id = $1 RETURNING *
