-- Takes a key that nobody has used, under neither of its names ($7: the other one, or null). The statement reads no
-- locks, so the tables of the embedded ledger need not first catch up with its log.
INSERT INTO idempotency (account, key, body_hash, call_id, state, charged, bytes, created_at, expires_at)
SELECT $1, $2, $3, $4, 'running', 0, 0, CAST($5 AS BIGINT), CAST($6 AS BIGINT)
WHERE NOT EXISTS (SELECT 1 FROM idempotency WHERE account = $1 AND key = $7)
ON CONFLICT (account, key) DO NOTHING
RETURNING call_id
