UPDATE sessions SET state = $2 WHERE id = $1
RETURNING id
