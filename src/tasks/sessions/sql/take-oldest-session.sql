-- The outer condition is checked again if the row was touched concurrently.
DELETE FROM sessions WHERE expires_at <= $3 AND id IN (
  SELECT id FROM sessions WHERE account = $1 AND kind = $2 AND expires_at <= $3 ORDER BY expires_at LIMIT 1
)
RETURNING id, account, kind, state, expires_at
