-- Only the first end counts, and only if the task is as it was read. If a call was added or output was recorded
-- meanwhile, no row is returned and the caller reads the task again.
UPDATE tasks SET state = $4, context_id = COALESCE($5, context_id), snapshot = COALESCE($6, snapshot), updated_at = $7, ended_at = $7, ending = $8,
  next_look_at = $9, open = CASE WHEN EXISTS (
    SELECT 1 FROM task_calls c
    WHERE c.primitive = tasks.primitive AND c.task_id = tasks.task_id AND c.service = tasks.service AND c.settlement IS NULL
  ) THEN 1 ELSE 0 END
WHERE primitive = $1 AND task_id = $2 AND service = $3 AND ended_at IS NULL AND calls = $10 AND expires_at <= $11 AND gave_output = $12
RETURNING primitive, task_id, service, account, run, offer_id, provider, context_id, state, notes, snapshot, created_at, updated_at, expires_at,
  calls, ended_at, ending, open, next_look_at, look_ms, claimed_until, gave_output, asked_at, sent_bytes
