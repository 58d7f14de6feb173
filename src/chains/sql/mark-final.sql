UPDATE deposits SET state = 'final', updated_at = $2, next_look_at = NULL WHERE id = $1 AND state IN ('crediting', 'credited') RETURNING id
