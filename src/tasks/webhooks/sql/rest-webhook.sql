-- The queue was empty at this signal. If something was queued since, the webhook is due again.
UPDATE webhooks SET claim = NULL, attempts = 0, due_at = CASE WHEN signal = $3 THEN NULL ELSE CAST($4 AS BIGINT) END WHERE id = $1 AND claim = $2
RETURNING due_at
