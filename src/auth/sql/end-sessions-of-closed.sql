DELETE FROM web_sessions WHERE account = $1 AND EXISTS (SELECT 1 FROM consumers WHERE account = $1 AND state = 'closed') RETURNING id
