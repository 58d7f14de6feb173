UPDATE tasks SET open = 0
WHERE primitive = $1 AND task_id = $2 AND service = $3 AND ended_at IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM task_calls c
  WHERE c.primitive = tasks.primitive AND c.task_id = tasks.task_id AND c.service = tasks.service AND c.settlement IS NULL
)
