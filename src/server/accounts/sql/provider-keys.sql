-- name: putProviderKey
INSERT INTO provider_keys (account, provider, address, sealed, last_four, created_at) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (account, provider, address)
DO UPDATE SET sealed = excluded.sealed, last_four = excluded.last_four, created_at = excluded.created_at

-- name: listProviderKeys
SELECT provider, address, sealed, last_four, created_at FROM provider_keys WHERE account = $1 ORDER BY provider, address

-- name: deleteProviderKeys
DELETE FROM provider_keys WHERE account = $1 AND provider = $2 RETURNING address

-- name: listAllProviderKeys
SELECT account, provider, address, sealed FROM provider_keys

-- name: replaceSealedKey
-- Only while nobody has stored another key.
UPDATE provider_keys SET sealed = $5 WHERE account = $1 AND provider = $2 AND address = $3 AND sealed = $4
RETURNING account
