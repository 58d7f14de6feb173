-- $1: JSON array of ids.
SELECT id, expires_at FROM sessions WHERE expires_at > $2 AND id IN (SELECT value FROM json_each($1))
