DELETE FROM web_sessions WHERE account = $1 AND id NOT IN (
  SELECT id FROM web_sessions WHERE account = $1 ORDER BY created_at DESC, id LIMIT $2
) RETURNING id
