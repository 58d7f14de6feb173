-- Both conditions have an index. The session of a deleted key is useless, but its row stays until its time is over.
DELETE FROM web_sessions WHERE id IN (
  SELECT id FROM web_sessions WHERE expires_at <= $1 OR seen_at <= $2 LIMIT $3
) RETURNING id
