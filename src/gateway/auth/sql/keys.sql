-- name: insertKey
-- $20: the most keys of a member, or of the account itself, of twice as many of all.
INSERT INTO api_keys (hash, account, label, development, disabled, created_at, expires_at, spend_limit, limit_reset, allowed_services,
  ask_above, limit_soft, limit_notify, requests_per_minute, tokens_per_minute, member, limit_by, limit_since, client, tags, continues)
SELECT $1, $2, $3, $4, 0, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $5, $17, $18, $19
WHERE (SELECT COUNT(*) + COUNT(CASE WHEN COALESCE(member, '') = COALESCE(CAST($15 AS TEXT), '') THEN 1 END) FROM api_keys WHERE account = $2)
    < 2 * CAST($20 AS BIGINT)
  AND (CAST($15 AS TEXT) IS NULL OR EXISTS (SELECT 1 FROM members WHERE account = $2 AND member = $15 AND role <> 'viewer'))
  AND (CAST($21 AS TEXT) IS NULL OR EXISTS (SELECT 1 FROM web_sessions WHERE id = $21))
  AND (CAST($22 AS TEXT) IS NULL OR EXISTS (SELECT 1 FROM api_keys WHERE hash = $22))
  AND ($23 = 0 OR NOT EXISTS (SELECT 1 FROM api_keys WHERE account = $2 AND member = $15 AND client = $17 AND development = $4))
RETURNING *

-- name: findKey
SELECT * FROM api_keys WHERE hash = $1

-- name: findKeyWithLimits
-- $2 is 1 if $1 is the SHA-256 of a secret, 0 if it is the hash of the key. A secret is refused from ends_at on; $3 is now.
SELECT api_keys.*, CASE WHEN $2 = 1 THEN (SELECT ends_at FROM key_secrets WHERE secret = $1) END AS secret_ends_at, l.subject, l.rules, l.requests_per_minute AS account_requests, l.tokens_per_minute AS account_tokens,
  l.allowed_services AS account_services, l.ask_above AS account_ask_above, l.tags AS account_tags, l.tag_rules,
  l.daily_since, l.weekly_since, l.monthly_since, l.ever_since
FROM api_keys LEFT JOIN account_limits AS l ON l.account = api_keys.account AND l.subject IN ('account', 'operator', api_keys.member)
WHERE hash = CASE WHEN $2 = 1 THEN COALESCE((SELECT key_hash FROM key_secrets WHERE secret = $1), $1) ELSE $1 END
  AND ($2 = 0 OR NOT EXISTS (SELECT 1 FROM key_secrets WHERE secret = $1 AND ends_at <= $3))
  AND (api_keys.member IS NULL OR EXISTS (SELECT 1 FROM members
  WHERE members.account = api_keys.account AND members.member = api_keys.member AND members.role <> 'viewer'))
ORDER BY l.subject

-- name: listKeys
SELECT * FROM api_keys WHERE account = $1 ORDER BY created_at, hash LIMIT $2 OFFSET $3

-- name: findKeyLabels
-- $1: a JSON object of arrays, each with the hash of one key.
SELECT hash, label FROM key_names WHERE hash IN (SELECT value ->> 0 FROM json_each($1))

-- name: updateKey
-- Each field has its own switch, so that two concurrent changes never undo each other. For example, a rename must not
-- enable a disabled key. $19 = 2 gives percentages only to a limit that becomes soft and has none.
UPDATE api_keys SET
  label = CASE WHEN $3 = 1 THEN $4 ELSE label END,
  disabled = CASE WHEN $5 = 1 THEN $6 ELSE disabled END,
  expires_at = CASE WHEN $7 = 1 THEN $8 ELSE expires_at END,
  spend_limit = CASE WHEN $9 = 1 THEN $10 ELSE spend_limit END,
  limit_reset = CASE WHEN $11 = 1 THEN $12 ELSE limit_reset END,
  allowed_services = CASE WHEN $13 = 1 THEN $14 ELSE allowed_services END,
  ask_above = CASE WHEN $15 = 1 THEN $16 ELSE ask_above END,
  limit_soft = CASE WHEN $17 = 1 THEN $18 ELSE limit_soft END,
  limit_notify = CASE WHEN $19 = 1 OR ($19 = 2 AND limit_soft = 0 AND limit_notify IS NULL) THEN $20 ELSE limit_notify END,
  requests_per_minute = CASE WHEN $21 = 1 THEN $22 ELSE requests_per_minute END,
  tokens_per_minute = CASE WHEN $23 = 1 THEN $24 ELSE tokens_per_minute END,
  limit_by = CASE WHEN $9 = 1 OR $11 = 1 OR $17 = 1 THEN $25 ELSE limit_by END,
  limit_since = CASE WHEN ($9 = 1 AND spend_limit IS DISTINCT FROM $10) OR ($11 = 1 AND limit_reset IS DISTINCT FROM $12)
    OR ($19 = 1 AND limit_notify IS DISTINCT FROM $20) OR ($19 = 2 AND limit_soft = 0 AND limit_notify IS NULL) THEN $26 ELSE limit_since END,
  -- A key without a limit counts like one whose limit never resets.
  counted_since = CASE WHEN
    CASE WHEN (CASE WHEN $9 = 1 THEN $10 ELSE spend_limit END) IS NULL THEN NULL WHEN $11 = 1 THEN $12 ELSE limit_reset END
    IS DISTINCT FROM CASE WHEN spend_limit IS NULL THEN NULL ELSE limit_reset END THEN $26 ELSE counted_since END,
  tags = CASE WHEN $27 = 1 THEN $28 ELSE tags END,
  continues = CASE WHEN $29 = 1 THEN $30 ELSE continues END
WHERE hash = $1 AND account = $2
RETURNING *

-- name: keepName
INSERT INTO key_names (hash, account, label, created_at)
SELECT hash, account, label, created_at FROM api_keys WHERE hash = $1 AND account = $2
ON CONFLICT (hash) DO UPDATE SET label = excluded.label

-- name: dropOldNames
-- The names of deleted keys of account $1, but for those of the newest $2.
DELETE FROM key_names WHERE account = $1 AND NOT EXISTS (SELECT 1 FROM api_keys WHERE api_keys.hash = key_names.hash)
  AND created_at <= (SELECT created_at FROM key_names AS names
    WHERE account = $1 AND NOT EXISTS (SELECT 1 FROM api_keys WHERE api_keys.hash = names.hash)
    ORDER BY created_at DESC LIMIT 1 OFFSET $2)

-- name: listNames
SELECT hash, label FROM key_names WHERE account = $1

-- name: keepFirstSecret
INSERT INTO key_secrets (secret, key_hash) SELECT hash, hash FROM api_keys WHERE hash = $1
ON CONFLICT (secret) DO NOTHING

-- name: endSecrets
-- The present secret works until $2, and the one before it no longer than until $3, which is now.
UPDATE key_secrets SET ends_at = CASE WHEN ends_at IS NULL THEN $2 WHEN ends_at > $3 THEN $3 ELSE ends_at END WHERE key_hash = $1

-- name: dropOldSecrets
-- Those of key $1 that have ended by $2, but for its first. Those of a deleted key go with it.
DELETE FROM key_secrets WHERE key_hash = $1 AND secret <> $1 AND ends_at <= $2

-- name: endSessionsOfSecrets
DELETE FROM web_sessions WHERE key_hash = $1

-- name: addSecret
INSERT INTO key_secrets (secret, key_hash) SELECT $2, hash FROM api_keys WHERE hash = $1
RETURNING secret

-- name: deleteKey
DELETE FROM api_keys WHERE hash = $1 AND account = $2 RETURNING hash

-- name: findKeyOfClient
-- The oldest, should there be several of before only one was made.
SELECT * FROM api_keys WHERE account = $1 AND member = $2 AND client = $3 AND development = $4
ORDER BY created_at, hash LIMIT 1

-- name: sweepExpiredKeys
DELETE FROM api_keys WHERE hash IN (SELECT hash FROM api_keys WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)
RETURNING hash

-- name: deleteKeysOfPerson
DELETE FROM api_keys WHERE account = $1 OR member = $1 RETURNING hash

-- name: touchMember
UPDATE members SET name = name WHERE account = $1 AND member = $2
