UPDATE locks SET lent = $2, kept = $3, expires_at = $4 WHERE id = $1
