-- name: insertSession
INSERT INTO web_sessions (id, account, signed_in_by, key_hash, wallet, client, network, person, sid, created_at, seen_at,
  expires_at)
SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10, $11
-- $12 is the SHA-256 of the text of its key, which was not replaced meanwhile.
WHERE NOT EXISTS (SELECT 1 FROM key_secrets WHERE secret = $12 AND ends_at IS NOT NULL)
RETURNING *

-- name: dropOldestSessions
-- $2 is empty for sessions without a key.
DELETE FROM web_sessions WHERE account = $1 AND COALESCE(key_hash, '') = $2 AND id NOT IN (
  SELECT id FROM web_sessions WHERE account = $1 AND COALESCE(key_hash, '') = $2 ORDER BY created_at DESC, id LIMIT $3
) RETURNING id

-- name: findSession
SELECT * FROM web_sessions WHERE id = $1

-- name: listSessions
-- $2 is 1 to list only the sessions of the key $3. A session whose key was deleted is over.
SELECT * FROM web_sessions WHERE account = $1 AND ($2 = 0 OR key_hash = $3) AND expires_at > $4 AND seen_at > $5
AND (signed_in_by <> 'api_key' OR EXISTS (SELECT 1 FROM api_keys WHERE hash = key_hash))
ORDER BY seen_at DESC, id

-- name: seeSession
UPDATE web_sessions SET seen_at = $2 WHERE id = $1 AND seen_at < $2 RETURNING id

-- name: deleteSession
DELETE FROM web_sessions WHERE id = $1 RETURNING id

-- name: deleteSessions
DELETE FROM web_sessions WHERE account = $1 AND ($2 = 0 OR key_hash = $3) RETURNING id

-- name: deleteSessionsOfPerson
-- $2 is empty for all of them.
DELETE FROM web_sessions WHERE person = $1 AND ($2 = '' OR sid = $2) RETURNING id

-- name: deleteSessionsOfSid
DELETE FROM web_sessions WHERE person IS NOT NULL AND sid = $1 RETURNING id, person

-- name: sweepSessions
-- Both conditions have an index. The session of a deleted key is useless, but its row stays until its time is over.
DELETE FROM web_sessions WHERE id IN (
  SELECT id FROM web_sessions WHERE expires_at <= $1 OR seen_at <= $2 LIMIT $3
) RETURNING id
