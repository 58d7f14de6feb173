-- The outer condition is checked again if a row was touched concurrently. Each row is returned to only one sweeper.
DELETE FROM sessions WHERE expires_at <= $2 AND id IN (
  SELECT id FROM sessions WHERE kind = $1 AND expires_at <= $2 ORDER BY expires_at LIMIT $3
)
RETURNING id, account, kind, state, expires_at
