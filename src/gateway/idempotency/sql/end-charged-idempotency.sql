-- The call has ended without a reply to repeat, and something was charged. So the key is no longer running, and a repeat
-- is told so at once.
UPDATE idempotency SET expires_at = $4 WHERE account = $1 AND key = $2 AND call_id = $3 AND state = 'running' AND expires_at > $4
  AND NOT EXISTS (SELECT 1 FROM locks WHERE locks.id = idempotency.call_id AND locks.state = 'held')
  AND NOT EXISTS (SELECT 1 FROM locks WHERE locks.parent = idempotency.call_id AND locks.state = 'held')
