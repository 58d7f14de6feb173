-- name: takeIdempotency
-- Takes a key that nobody has used, under neither of its names ($7: the other one, or null). The statement reads no
-- locks, so the tables of the embedded ledger need not first catch up with its log.
INSERT INTO idempotency (account, key, body_hash, call_id, state, charged, bytes, created_at, expires_at)
SELECT $1, $2, $3, $4, 'running', 0, 0, CAST($5 AS BIGINT), CAST($6 AS BIGINT)
WHERE NOT EXISTS (SELECT 1 FROM idempotency WHERE account = $1 AND key = $7)
ON CONFLICT (account, key) DO NOTHING
RETURNING call_id

-- name: beginIdempotency
-- Takes the key when it was never used or when its row has expired. Returns no row when somebody else has it. Also
-- returns no row when its call, or a call under it, was charged or goes on as a task and the reply was not kept. Only
-- the sweep frees such a key.
INSERT INTO idempotency (account, key, body_hash, call_id, state, charged, bytes, created_at, expires_at)
VALUES ($1, $2, $3, $4, 'running', 0, 0, $5, $6)
ON CONFLICT (account, key) DO UPDATE SET
  body_hash = excluded.body_hash, call_id = excluded.call_id, state = 'running', status = NULL, headers = NULL, body = NULL,
  charged = 0, bytes = 0, created_at = excluded.created_at, expires_at = excluded.expires_at
WHERE idempotency.expires_at <= excluded.created_at
  AND (idempotency.state = 'done' OR (NOT EXISTS (SELECT 1 FROM locks WHERE locks.id = idempotency.call_id AND ((locks.state = 'settled' AND locks.charged > 0) OR (locks.state = 'held' AND locks.kept = 1)))
    AND NOT EXISTS (SELECT 1 FROM locks WHERE locks.parent = idempotency.call_id AND locks.state = 'settled' AND locks.charged > 0)))
RETURNING call_id

-- name: findIdempotency
SELECT body_hash, call_id, state, status, headers, body, expires_at FROM idempotency WHERE account = $1 AND key = $2

-- name: findCalledNames
-- The details of a call and of the calls that were made under it.
SELECT id, lock_detail FROM locks WHERE id = $1 OR parent = $1

-- name: finishIdempotency
UPDATE idempotency SET state = 'done', status = $4, headers = $5, body = $6, charged = $7, bytes = $8, expires_at = $9
WHERE account = $1 AND key = $2 AND call_id = $3 AND state = 'running'
RETURNING call_id

-- name: abandonIdempotency
-- The key stays taken if the lock of the call, or of a call under it, is held or charged. A call that ended with an error
-- of its provider is settled with nothing, and a retry of it runs.
DELETE FROM idempotency WHERE account = $1 AND key = $2 AND call_id = $3 AND state = 'running'
  AND NOT EXISTS (SELECT 1 FROM locks WHERE locks.id = idempotency.call_id AND (locks.state = 'held' OR (locks.state = 'settled' AND locks.charged > 0)))
  AND NOT EXISTS (SELECT 1 FROM locks WHERE locks.parent = idempotency.call_id AND (locks.state = 'held' OR (locks.state = 'settled' AND locks.charged > 0)))

-- name: endChargedIdempotency
-- The call has ended without a reply to repeat, and something was charged. So the key is no longer running, and a repeat
-- is told so at once.
UPDATE idempotency SET expires_at = $4 WHERE account = $1 AND key = $2 AND call_id = $3 AND state = 'running' AND expires_at > $4
  AND NOT EXISTS (SELECT 1 FROM locks WHERE locks.id = idempotency.call_id AND locks.state = 'held')
  AND NOT EXISTS (SELECT 1 FROM locks WHERE locks.parent = idempotency.call_id AND locks.state = 'held')

-- name: endRunningIdempotency
UPDATE idempotency SET expires_at = $1 WHERE state = 'running'

-- name: forgetFreeReplies
-- Deletes the free replies of account $1 that are older than its newest $2 bytes. A repeat then runs again, and is free
-- again.
DELETE FROM idempotency WHERE account = $1 AND state = 'done' AND charged = 0 AND key IN (
  SELECT key FROM (
    SELECT key, SUM(bytes) OVER (ORDER BY created_at DESC, key) AS kept FROM idempotency WHERE account = $1 AND state = 'done' AND bytes > 0
  ) AS newest WHERE kept > $2
)

-- name: forgetChargedReplies
-- Deletes only the replies of charged calls. The key stays and shows that the call was made, so that no repeat is
-- charged.
UPDATE idempotency SET headers = '{}', body = NULL, bytes = 0 WHERE account = $1 AND state = 'done' AND key IN (
  SELECT key FROM (
    SELECT key, SUM(bytes) OVER (ORDER BY created_at DESC, key) AS kept FROM idempotency WHERE account = $1 AND state = 'done' AND bytes > 0
  ) AS newest WHERE kept > $2
)

-- name: sweepIdempotency
-- A charged call without a kept reply is remembered until $3, as long as a reply would have been.
DELETE FROM idempotency WHERE (account, key) IN (
  SELECT account, key FROM idempotency
  WHERE expires_at <= $1 AND (state = 'done' OR expires_at <= $3
    OR (NOT EXISTS (SELECT 1 FROM locks WHERE locks.id = idempotency.call_id AND ((locks.state = 'settled' AND locks.charged > 0) OR (locks.state = 'held' AND locks.kept = 1)))
      AND NOT EXISTS (SELECT 1 FROM locks WHERE locks.parent = idempotency.call_id AND locks.state = 'settled' AND locks.charged > 0)))
  ORDER BY expires_at LIMIT $2
)
RETURNING key
