SELECT tasks.primitive, tasks.task_id, tasks.service, account, run, offer_id, provider, context_id, state, notes, snapshot, tasks.created_at, updated_at,
  expires_at, calls, ended_at, ending, open, next_look_at, look_ms, claimed_until, gave_output, asked_at, sent_bytes
FROM task_calls
JOIN tasks ON tasks.primitive = task_calls.primitive AND tasks.task_id = task_calls.task_id AND tasks.service = task_calls.service
WHERE task_calls.call_id = $1
