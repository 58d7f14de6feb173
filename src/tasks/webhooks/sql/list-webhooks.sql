SELECT name, form, sealed, created_at FROM webhooks
WHERE primitive = $1 AND service = $2 AND task_id = $3 AND account = $4 AND run = $5 AND expires_at > $6
ORDER BY created_at, name
