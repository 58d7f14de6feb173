-- Takes a key that nobody has used. It names no lock, so the tables of the embedded ledger need not follow its log for it.
INSERT INTO idempotency (account, key, body_hash, call_id, state, charged, bytes, created_at, expires_at)
VALUES ($1, $2, $3, $4, 'running', 0, 0, $5, $6)
ON CONFLICT (account, key) DO NOTHING
RETURNING call_id
