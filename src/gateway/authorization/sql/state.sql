-- name: putState
INSERT INTO authorization_state (kind, id, payload, grant_key, expires_at, client) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (kind, id) DO UPDATE SET payload = excluded.payload, grant_key = excluded.grant_key, expires_at = excluded.expires_at

-- name: addState
INSERT INTO authorization_state (kind, id, payload, grant_key, expires_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (kind, id) DO NOTHING RETURNING id

-- name: findState
SELECT * FROM authorization_state WHERE kind = $1 AND id = $2 AND expires_at > $3

-- name: consumeState
-- Of requests with one code or token, at several gateways too, one is the first; others count as the same for a time.
UPDATE authorization_state
SET payload = CASE WHEN consumed_at IS NULL THEN $3 ELSE payload END, consumed_at = COALESCE(consumed_at, $4), expires_at = $5
WHERE kind = $1 AND id = $2 AND (consumed_at IS NULL OR consumed_at > $6) RETURNING payload

-- name: keepNewestState
-- Of the used ones ($3 = 1), or of the others: the newest were used last, or end last. Those of one time are ordered by id.
DELETE FROM authorization_state WHERE kind = $1 AND grant_key = $2 AND (consumed_at IS NOT NULL) = ($3 = 1)
  AND (COALESCE(consumed_at, expires_at), id) < (
  SELECT COALESCE(consumed_at, expires_at), id FROM authorization_state
  WHERE kind = $1 AND grant_key = $2 AND (consumed_at IS NOT NULL) = ($3 = 1)
  ORDER BY COALESCE(consumed_at, expires_at) DESC, id DESC LIMIT 1 OFFSET $4
) RETURNING expires_at

-- name: deleteState
DELETE FROM authorization_state WHERE kind = $1 AND id = $2

-- name: deleteStateOfGrant
DELETE FROM authorization_state WHERE kind = $1 AND grant_key = $2

-- name: beginState
-- What a stranger begins, unless its place ($7: the networks that begin so) has $8, or all have $9.
INSERT INTO authorization_state (kind, id, payload, network, expires_at)
SELECT $1, $2, $3, $4, $5
WHERE (SELECT COUNT(*) FROM authorization_state WHERE kind = $1 AND network >= $7 AND network < $7 || 'h' AND expires_at > $6) < $8
  AND (SELECT COUNT(*) FROM authorization_state WHERE kind = $1 AND network IS NOT NULL AND expires_at > $6) < $9
RETURNING id

-- name: countBegun
SELECT COUNT(*) AS begun FROM authorization_state WHERE kind = $1 AND network >= $2 AND network < $2 || 'h' AND expires_at > $3

-- name: sampleBegun
-- Some of those that a place has begun. Ids are digests, so those that follow any of them are a random sample.
SELECT id, network, expires_at FROM authorization_state
WHERE kind = $1 AND id >= $2 AND network >= $3 AND network < $3 || 'h' AND expires_at > $4 ORDER BY id LIMIT $5

-- name: makeWay
DELETE FROM authorization_state WHERE kind = $1 AND id = $2 AND network IS NOT NULL

-- name: keepClient
UPDATE authorization_state SET network = NULL, expires_at = CASE WHEN expires_at > $2 THEN expires_at ELSE $2 END
WHERE kind = 'Client' AND id = $1

-- name: endGrant
DELETE FROM authorization_state WHERE grant_key = $1 AND NOT EXISTS (SELECT 1 FROM api_keys WHERE hash = $1)
RETURNING client

-- name: endClient
-- A client that registered itself, and whose last grant has ended.
UPDATE authorization_state SET expires_at = $2
WHERE kind = 'Client' AND id = $1 AND network IS NULL AND expires_at > $2
  AND NOT EXISTS (SELECT 1 FROM authorization_state WHERE client = $1)

-- name: findEndedGrants
SELECT grant_key FROM authorization_state WHERE kind = 'Grant' AND grant_key IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM api_keys WHERE hash = grant_key) LIMIT $1

-- name: sweepState
DELETE FROM authorization_state WHERE (kind, id) IN (
  SELECT kind, id FROM authorization_state WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2
) RETURNING id
