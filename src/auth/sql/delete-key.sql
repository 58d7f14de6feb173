DELETE FROM api_keys WHERE hash = $1 AND account = $2 RETURNING hash
