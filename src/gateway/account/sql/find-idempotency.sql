SELECT body_hash, call_id, state, status, headers, body FROM idempotency WHERE account = $1 AND key = $2
