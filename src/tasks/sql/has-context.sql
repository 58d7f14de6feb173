SELECT 1 AS found FROM tasks WHERE context_id = $1 AND primitive = $2 AND service = $3 LIMIT 1
