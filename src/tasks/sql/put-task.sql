INSERT INTO tasks (primitive, task_id, service, account, run, offer_id, provider, context_id, state, notes, snapshot, created_at, updated_at, expires_at,
  calls, ended_at, ending, open, next_look_at, look_ms, claimed_until, asked_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, NULL, $11, $11, $12, 0, NULL, NULL, 1, $13, $14, 0, $15)
ON CONFLICT (primitive, task_id, service) DO NOTHING
RETURNING task_id
