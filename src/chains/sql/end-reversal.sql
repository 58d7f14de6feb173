UPDATE deposits SET state = 'reversed', updated_at = $2, next_look_at = NULL WHERE id = $1 AND state = 'reversing' RETURNING id
