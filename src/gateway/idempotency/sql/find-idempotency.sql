SELECT body_hash, call_id, state, status, headers, body, expires_at FROM idempotency WHERE account = $1 AND key = $2
