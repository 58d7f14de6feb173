-- Of all that is kept for account $1, what is older than the newest $2 bytes and cost nothing: a repeat runs again, and costs nothing again.
DELETE FROM idempotency WHERE account = $1 AND state = 'done' AND charged = 0 AND key IN (
  SELECT key FROM (
    SELECT key, SUM(bytes) OVER (ORDER BY created_at DESC, key) AS kept FROM idempotency WHERE account = $1 AND state = 'done' AND bytes > 0
  ) AS newest WHERE kept > $2
)
