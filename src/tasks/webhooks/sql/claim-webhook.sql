UPDATE webhooks SET claim = $2, due_at = $3 WHERE id = $1 AND due_at <= $4
RETURNING account, run, primitive, service, task_id, name, receiver
