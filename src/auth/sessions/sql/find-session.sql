SELECT * FROM web_sessions WHERE id = $1
