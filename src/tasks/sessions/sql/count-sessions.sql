SELECT count(*) AS sessions FROM sessions WHERE account = $1 AND kind = $2 AND expires_at > $3
