DELETE FROM webhooks WHERE primitive = $1 AND service = $2 AND task_id = $3 AND account = $4 AND run = $5 AND name = $6
RETURNING id
