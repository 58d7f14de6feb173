-- The outer condition is checked again if the row was changed concurrently. The task's calls are deleted with it.
DELETE FROM tasks WHERE open = 0 AND (primitive, task_id, service) IN (
  SELECT primitive, task_id, service FROM tasks WHERE open = 0 AND ended_at <= $1 ORDER BY ended_at LIMIT $2
)
RETURNING task_id
