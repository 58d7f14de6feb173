DELETE FROM used_nonces WHERE nonce IN (SELECT nonce FROM used_nonces WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2) RETURNING nonce
