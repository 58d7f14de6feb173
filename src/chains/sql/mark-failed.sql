UPDATE deposits SET state = 'failed', reason = $2, updated_at = $3, next_look_at = NULL WHERE id = $1 AND state = 'received' RETURNING id
