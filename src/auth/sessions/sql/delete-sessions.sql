DELETE FROM web_sessions WHERE account = $1 AND ($2 = 0 OR key_hash = $3) RETURNING id
