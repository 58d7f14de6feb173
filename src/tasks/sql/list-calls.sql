SELECT call_id, price, created_at, kept_until, most, settlement FROM task_calls WHERE primitive = $1 AND task_id = $2 AND service = $3 ORDER BY position, call_id
