UPDATE idempotency SET expires_at = $1 WHERE state = 'running'
