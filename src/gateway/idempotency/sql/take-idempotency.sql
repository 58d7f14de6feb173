-- Takes a key that nobody has used. The statement reads no locks, so the tables of the embedded ledger need not first
-- catch up with its log.
INSERT INTO idempotency (account, key, body_hash, call_id, state, charged, bytes, created_at, expires_at)
VALUES ($1, $2, $3, $4, 'running', 0, 0, $5, $6)
ON CONFLICT (account, key) DO NOTHING
RETURNING call_id
