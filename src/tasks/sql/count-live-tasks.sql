SELECT count(*) AS tasks FROM tasks WHERE open = 1 AND ended_at IS NULL
