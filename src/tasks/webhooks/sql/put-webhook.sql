-- Returns no row if the task or the account has the most webhooks allowed. A webhook with the same name is replaced,
-- and the deliveries in its queue go to the new receiver.
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
