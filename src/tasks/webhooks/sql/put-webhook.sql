-- No row comes back where the task or the account has as many as there may be. One of the same name is replaced, and what waits in its queue goes to the new
-- receiver.
INSERT INTO webhooks (id, account, run, primitive, service, task_id, name, form, receiver, sealed, created_at, expires_at)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, CAST($11 AS BIGINT), CAST($12 AS BIGINT)
WHERE EXISTS (
    SELECT 1 FROM webhooks
    WHERE primitive = $4 AND service = $5 AND task_id = $6 AND account = $2 AND run = $3 AND name = $7
  ) OR (
    (SELECT count(*) FROM webhooks WHERE primitive = $4 AND service = $5 AND task_id = $6) < CAST($13 AS BIGINT)
    AND (SELECT count(*) FROM webhooks WHERE account = $2) < CAST($14 AS BIGINT)
  )
ON CONFLICT (primitive, service, task_id, account, run, name) DO UPDATE SET
  form = excluded.form, receiver = excluded.receiver, sealed = excluded.sealed, attempts = 0, expires_at = excluded.expires_at
RETURNING created_at
