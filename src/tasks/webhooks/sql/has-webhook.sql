SELECT 1 AS found FROM webhooks WHERE primitive = $1 AND service = $2 AND task_id = $3 LIMIT 1
