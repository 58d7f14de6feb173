-- Takes the key when it was never used or when its row has expired. Returns no row when somebody else has it. Also
-- returns no row when its call, or a call under it, was charged or goes on as a task and the reply was not kept. Only
-- the sweep frees such a key.
INSERT INTO idempotency (account, key, body_hash, call_id, state, charged, bytes, created_at, expires_at)
VALUES ($1, $2, $3, $4, 'running', 0, 0, $5, $6)
ON CONFLICT (account, key) DO UPDATE SET
  body_hash = excluded.body_hash, call_id = excluded.call_id, state = 'running', status = NULL, headers = NULL, body = NULL,
  charged = 0, bytes = 0, created_at = excluded.created_at, expires_at = excluded.expires_at
WHERE idempotency.expires_at <= excluded.created_at
  AND (idempotency.state = 'done' OR (NOT EXISTS (SELECT 1 FROM locks WHERE locks.id = idempotency.call_id AND ((locks.state = 'settled' AND locks.charged > 0) OR (locks.state = 'held' AND locks.kept = 1)))
    AND NOT EXISTS (SELECT 1 FROM locks WHERE locks.parent = idempotency.call_id AND locks.state = 'settled' AND locks.charged > 0)))
RETURNING call_id
