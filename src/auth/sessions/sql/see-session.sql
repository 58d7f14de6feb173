UPDATE web_sessions SET seen_at = $2 WHERE id = $1 AND seen_at < $2 RETURNING id
