-- A call whose lock is held or settled was charged, or will be, and so was one under which another was: then its key stays taken.
DELETE FROM idempotency WHERE account = $1 AND key = $2 AND call_id = $3 AND state = 'running'
  AND NOT EXISTS (SELECT 1 FROM locks WHERE locks.id = idempotency.call_id AND locks.state IN ('held', 'settled'))
  AND NOT EXISTS (SELECT 1 FROM locks WHERE locks.parent = idempotency.call_id AND locks.state IN ('held', 'settled'))
