DELETE FROM idempotency WHERE account = $1 AND key = $2 AND call_id = $3 AND state = 'running'
