-- Deletes only the replies of charged calls. The key stays and shows that the call was made, so that no repeat is
-- charged.
UPDATE idempotency SET headers = '{}', body = NULL, bytes = 0 WHERE account = $1 AND state = 'done' AND key IN (
  SELECT key FROM (
    SELECT key, SUM(bytes) OVER (ORDER BY created_at DESC, key) AS kept FROM idempotency WHERE account = $1 AND state = 'done' AND bytes > 0
  ) AS newest WHERE kept > $2
)
