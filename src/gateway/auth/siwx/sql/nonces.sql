-- name: useNonce
INSERT INTO used_nonces (nonce, expires_at) VALUES ($1, $2) ON CONFLICT (nonce) DO NOTHING RETURNING nonce

-- name: sweepNonces
DELETE FROM used_nonces WHERE nonce IN (SELECT nonce FROM used_nonces WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2) RETURNING nonce
