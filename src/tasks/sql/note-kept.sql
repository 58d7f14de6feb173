UPDATE task_calls SET kept_until = $2 WHERE call_id = $1 AND kept_until < $2
