-- Never to an earlier time: another gateway may have used it since. One whose time is over does not come back.
UPDATE sessions SET expires_at = CASE WHEN expires_at > $2 THEN expires_at ELSE $2 END WHERE id = $1 AND expires_at > $3
RETURNING id
