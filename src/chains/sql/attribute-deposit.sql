UPDATE deposits SET account = $2, updated_at = $3, next_look_at = $3 WHERE id = $1 AND account IS NULL AND state = 'final' RETURNING id
