DELETE FROM kept_responses WHERE id IN (SELECT id FROM kept_responses WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2) RETURNING id
