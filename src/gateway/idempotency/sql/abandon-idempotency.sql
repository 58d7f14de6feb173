-- The key stays taken if the lock of the call, or of a call under it, is held or charged. A call that ended with an error
-- of its provider is settled with nothing, and a retry of it runs.
DELETE FROM idempotency WHERE account = $1 AND key = $2 AND call_id = $3 AND state = 'running'
  AND NOT EXISTS (SELECT 1 FROM locks WHERE locks.id = idempotency.call_id AND (locks.state = 'held' OR (locks.state = 'settled' AND locks.charged > 0)))
  AND NOT EXISTS (SELECT 1 FROM locks WHERE locks.parent = idempotency.call_id AND (locks.state = 'held' OR (locks.state = 'settled' AND locks.charged > 0)))
