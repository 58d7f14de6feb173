-- name: changeSession
UPDATE sessions SET state = $2 WHERE id = $1
RETURNING id

-- name: countSessions
-- Those of the account, and of its part $4.
SELECT count(*) AS together, count(CASE WHEN COALESCE(part, '') = COALESCE(CAST($4 AS TEXT), '') THEN 1 END) AS own
FROM sessions WHERE account = $1 AND kind = $2 AND expires_at > $3

-- name: deleteSession
DELETE FROM sessions WHERE id = $1
RETURNING id

-- name: expiriesOfSessions
-- $1: ids, see listParam.
SELECT id, expires_at FROM sessions WHERE expires_at > $2 AND id IN (SELECT value ->> 0 FROM json_each($1))

-- name: findSession
SELECT id, account, kind, state, expires_at FROM sessions WHERE id = $1 AND expires_at > $2

-- name: putSession
INSERT INTO sessions (id, account, kind, state, expires_at, part) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (id) DO UPDATE SET account = excluded.account, part = excluded.part, kind = excluded.kind, state = excluded.state, expires_at = excluded.expires_at

-- name: sweepSessions
-- The outer condition is checked again if a row was touched concurrently. Each row is returned to only one sweeper.
DELETE FROM sessions WHERE expires_at <= $2 AND id IN (
  SELECT id FROM sessions WHERE kind = $1 AND expires_at <= $2 ORDER BY expires_at LIMIT $3
)
RETURNING id, account, kind, state, expires_at

-- name: takeOldestSession
-- The outer condition is checked again if the row was touched concurrently.
DELETE FROM sessions WHERE expires_at <= $3 AND id IN (
  SELECT id FROM sessions WHERE account = $1 AND kind = $2 AND expires_at <= $3
    AND COALESCE(part, '') = COALESCE(CAST($4 AS TEXT), '') ORDER BY expires_at LIMIT 1
)
RETURNING id, account, kind, state, expires_at

-- name: touchSession
-- Never sets an earlier time, because another gateway may have used the session since. An expired session is not
-- revived.
UPDATE sessions SET expires_at = CASE WHEN expires_at > $2 THEN expires_at ELSE $2 END WHERE id = $1 AND expires_at > $3
RETURNING id
