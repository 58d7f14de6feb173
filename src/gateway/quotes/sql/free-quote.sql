UPDATE quotes SET call_id = NULL, used_at = NULL WHERE id = $1 AND call_id = $2
