UPDATE task_calls SET settlement = $2 WHERE call_id = $1 AND settlement IS NULL
