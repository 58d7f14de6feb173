UPDATE deposits SET state = 'reversing', reason = $2, updated_at = $3, next_look_at = $3 WHERE id = $1 AND state = 'credited' RETURNING id
