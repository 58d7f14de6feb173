DELETE FROM web_sessions WHERE id IN (
  SELECT id FROM web_sessions WHERE expires_at <= $1 OR seen_at <= $2
  OR (signed_in_by = 'api_key' AND NOT EXISTS (SELECT 1 FROM api_keys WHERE hash = key_hash))
  LIMIT $3
) RETURNING id
