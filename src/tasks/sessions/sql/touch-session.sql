-- Never sets an earlier time, because another gateway may have used the session since. An expired session is not
-- revived.
UPDATE sessions SET expires_at = CASE WHEN expires_at > $2 THEN expires_at ELSE $2 END WHERE id = $1 AND expires_at > $3
RETURNING id
