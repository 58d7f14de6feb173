UPDATE deposits SET next_look_at = $1 WHERE next_look_at > $1 RETURNING id
