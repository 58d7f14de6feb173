-- Deletes the free replies of account $1 that are older than its newest $2 bytes. A repeat then runs again, and is free
-- again.
DELETE FROM idempotency WHERE account = $1 AND state = 'done' AND charged = 0 AND key IN (
  SELECT key FROM (
    SELECT key, SUM(bytes) OVER (ORDER BY created_at DESC, key) AS kept FROM idempotency WHERE account = $1 AND state = 'done' AND bytes > 0
  ) AS newest WHERE kept > $2
)
