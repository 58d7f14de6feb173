UPDATE idempotency SET state = 'done', status = $4, headers = $5, body = $6, expires_at = $7
WHERE account = $1 AND key = $2 AND call_id = $3 AND state = 'running'
RETURNING call_id
