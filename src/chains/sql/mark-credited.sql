UPDATE deposits SET state = 'credited', updated_at = $2, next_look_at = $3 WHERE id = $1 AND state = 'crediting' RETURNING id
