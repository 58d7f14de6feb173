-- The key stays taken if the lock of the call, or of a call under it, is held or settled, because that call was charged
-- or will be.
DELETE FROM idempotency WHERE account = $1 AND key = $2 AND call_id = $3 AND state = 'running'
  AND NOT EXISTS (SELECT 1 FROM locks WHERE locks.id = idempotency.call_id AND locks.state IN ('held', 'settled'))
  AND NOT EXISTS (SELECT 1 FROM locks WHERE locks.parent = idempotency.call_id AND locks.state IN ('held', 'settled'))
