DELETE FROM kept_responses WHERE id = $1 AND account = $2 RETURNING id
