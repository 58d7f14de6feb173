SELECT primitive, task_id, service, account, run, offer_id, provider, context_id, state, notes, snapshot, created_at, updated_at, expires_at,
  calls, ended_at, ending, open, next_look_at, look_ms, claimed_until, gave_output, asked_at, sent_bytes
FROM tasks WHERE primitive = $1 AND task_id = $2 AND service = $3
