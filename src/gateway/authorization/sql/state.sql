-- name: putState
INSERT INTO authorization_state (kind, id, payload, grant_key, expires_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (kind, id) DO UPDATE SET payload = excluded.payload, grant_key = excluded.grant_key, expires_at = excluded.expires_at

-- name: addState
INSERT INTO authorization_state (kind, id, payload, grant_key, expires_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (kind, id) DO NOTHING RETURNING id

-- name: findState
SELECT * FROM authorization_state WHERE kind = $1 AND id = $2 AND expires_at > $3

-- name: consumeState
-- Of two requests with one code or token, at two gateways too, one gets the row.
UPDATE authorization_state SET consumed_at = $3, expires_at = CASE WHEN expires_at < $4 THEN expires_at ELSE $4 END
WHERE kind = $1 AND id = $2 AND consumed_at IS NULL RETURNING id

-- name: deleteState
DELETE FROM authorization_state WHERE kind = $1 AND id = $2

-- name: deleteStateOfGrant
DELETE FROM authorization_state WHERE kind = $1 AND grant_key = $2

-- name: beginState
-- What a stranger begins. A place may have one more while as many are free as it then has.
INSERT INTO authorization_state (kind, id, payload, network, expires_at)
SELECT $1, $2, $3, $4, $5
WHERE (SELECT COUNT(*) FROM authorization_state WHERE kind = $1 AND network = $4 AND expires_at > $6) < $7
  AND (SELECT COUNT(*) FROM authorization_state WHERE kind = $1 AND network = $4 AND expires_at > $6)
    < $8 - (SELECT COUNT(*) FROM authorization_state WHERE kind = $1 AND network IS NOT NULL AND expires_at > $6)
RETURNING id

-- name: keepClient
UPDATE authorization_state SET network = NULL, expires_at = CASE WHEN expires_at > $2 THEN expires_at ELSE $2 END
WHERE kind = 'Client' AND id = $1

-- name: sweepState
DELETE FROM authorization_state WHERE (kind, id) IN (
  SELECT kind, id FROM authorization_state WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2
) RETURNING id
