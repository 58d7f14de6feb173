DELETE FROM web_sessions WHERE id = $1 RETURNING id
