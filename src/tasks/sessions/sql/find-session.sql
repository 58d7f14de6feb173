SELECT id, account, kind, state, expires_at FROM sessions WHERE id = $1 AND expires_at > $2
