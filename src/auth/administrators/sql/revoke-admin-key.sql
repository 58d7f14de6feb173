UPDATE admin_keys SET revoked_at = COALESCE(revoked_at, $2) WHERE id = $1 RETURNING *
