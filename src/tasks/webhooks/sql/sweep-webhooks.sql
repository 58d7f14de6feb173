DELETE FROM webhooks WHERE expires_at <= $1 AND id IN (SELECT id FROM webhooks WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)
RETURNING id
