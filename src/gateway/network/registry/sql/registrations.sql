-- name: findRegistration
SELECT r.document, r.past_prices, r.revision, r.name, r.name_key, r.created_at, r.updated_at, c.connection, c.node, c.connected_at, c.left_at,
  (SELECT MIN(name) FROM service_names WHERE provider = $1) AS named
FROM provider_connections c LEFT JOIN provider_registrations r ON r.provider = c.provider
WHERE c.provider = $1

-- name: findNameOwner
-- Names of providers that left before $2 are free, and so are those of banned ones: see findLookAlikes.
SELECT r.provider FROM provider_registrations r JOIN provider_connections c ON c.provider = r.provider
WHERE r.name_key = $1 AND (c.left_at IS NULL OR c.left_at > $2)
  AND NOT EXISTS (SELECT 1 FROM provider_bans b WHERE b.provider = r.provider)

-- name: freeName
-- Its provider has to find another one when it comes back.
UPDATE provider_registrations SET name_key = NULL
WHERE name_key = $1 AND provider <> $2 AND NOT EXISTS (
  SELECT 1 FROM provider_connections c WHERE c.provider = provider_registrations.provider
  AND (c.left_at IS NULL OR c.left_at > $3)
  AND NOT EXISTS (SELECT 1 FROM provider_bans b WHERE b.provider = c.provider))

-- name: putRegistration
INSERT INTO provider_registrations (provider, account, name, name_key, document, past_prices, revision, created_at, updated_at, bytes)
SELECT $1, $2, $3, $4, $5, $9, 1, $6, $6, $10
WHERE EXISTS (SELECT 1 FROM provider_connections WHERE provider = $1 AND connection = $7)
  AND NOT EXISTS (SELECT 1 FROM provider_registrations WHERE name_key = $4 AND provider <> $1)
  AND COALESCE((SELECT revision FROM provider_registrations WHERE provider = $1), 0) = $8
ON CONFLICT (provider) DO UPDATE SET
  account = excluded.account,
  name = excluded.name,
  name_key = excluded.name_key,
  document = excluded.document,
  past_prices = excluded.past_prices,
  revision = provider_registrations.revision + 1,
  updated_at = excluded.updated_at,
  bytes = excluded.bytes

-- name: noteRegistration
UPDATE provider_connections SET
  revision = (SELECT revision FROM provider_registrations WHERE provider = $1),
  version = (SELECT version FROM registry_clock)
WHERE provider = $1 AND connection = $2 AND revision < (SELECT revision FROM provider_registrations WHERE provider = $1)
RETURNING provider, connection, node, epoch, left_at, revision, version

-- name: findDocument
SELECT provider, document, past_prices, revision FROM provider_registrations WHERE provider = $1

-- name: listDocuments
SELECT document FROM provider_registrations
