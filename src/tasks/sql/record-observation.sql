UPDATE tasks SET state = $4, context_id = COALESCE($5, context_id), updated_at = $6, next_look_at = $7, look_ms = $8,
  gave_output = CASE WHEN $9 = 1 THEN 1 ELSE gave_output END
WHERE primitive = $1 AND task_id = $2 AND service = $3 AND ended_at IS NULL
RETURNING primitive, task_id, service, account, run, offer_id, provider, context_id, state, notes, snapshot, created_at, updated_at, expires_at,
  calls, ended_at, ending, open, next_look_at, look_ms, claimed_until, gave_output, asked_at, sent_bytes
