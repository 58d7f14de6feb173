-- The outer condition is looked at again where a row was touched in between. Each row comes back to one sweeper alone.
DELETE FROM sessions WHERE expires_at <= $2 AND id IN (
  SELECT id FROM sessions WHERE kind = $1 AND expires_at <= $2 ORDER BY expires_at LIMIT $3
)
RETURNING id, account, kind, state, expires_at
