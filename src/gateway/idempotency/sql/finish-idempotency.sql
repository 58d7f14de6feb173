UPDATE idempotency SET state = 'done', status = $4, headers = $5, body = $6, charged = $7, bytes = $8, expires_at = $9
WHERE account = $1 AND key = $2 AND call_id = $3 AND state = 'running'
RETURNING call_id
