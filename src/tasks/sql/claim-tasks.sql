-- Claims the tasks that are due the longest, at most $4 per offer.
WITH due AS (
  SELECT primitive AS due_primitive, task_id AS due_id, service AS due_service, offer_id AS due_offer, next_look_at AS due_at
  FROM tasks
  WHERE open = 1 AND next_look_at <= $1 AND claimed_until <= $1 AND offer_id NOT IN (SELECT value FROM json_each($5))
  ORDER BY next_look_at LIMIT 64
), chosen AS (
  SELECT due_primitive, due_id, due_service
  FROM (SELECT due.*, ROW_NUMBER() OVER (PARTITION BY due_offer ORDER BY due_at) AS nth FROM due) AS ranked
  WHERE nth <= $4 ORDER BY due_at LIMIT $3
)
UPDATE tasks SET claimed_until = $2 FROM chosen
WHERE primitive = due_primitive AND task_id = due_id AND service = due_service
RETURNING primitive, task_id, service, account, run, offer_id, provider, context_id, state, notes, snapshot, created_at, updated_at, expires_at,
  calls, ended_at, ending, open, next_look_at, look_ms, claimed_until, gave_output, asked_at, sent_bytes
