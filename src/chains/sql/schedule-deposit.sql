UPDATE deposits SET next_look_at = $2 WHERE id = $1 AND next_look_at IS NOT NULL RETURNING id
