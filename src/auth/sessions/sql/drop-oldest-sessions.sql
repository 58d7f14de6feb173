-- $2 is empty for sessions without a key.
DELETE FROM web_sessions WHERE account = $1 AND COALESCE(key_hash, '') = $2 AND id NOT IN (
  SELECT id FROM web_sessions WHERE account = $1 AND COALESCE(key_hash, '') = $2 ORDER BY created_at DESC, id LIMIT $3
) RETURNING id
