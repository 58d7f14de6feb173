-- Its queue was seen to be empty at this signal. Should something have been queued since, it is due again.
UPDATE webhooks SET claim = NULL, attempts = 0, due_at = CASE WHEN signal = $3 THEN NULL ELSE CAST($4 AS BIGINT) END WHERE id = $1 AND claim = $2
RETURNING due_at
