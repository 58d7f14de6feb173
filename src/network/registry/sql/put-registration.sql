INSERT INTO provider_registrations (provider, account, name, name_key, document, past_prices, revision, created_at, updated_at)
SELECT $1, $2, $3, $4, $5, $9, 1, $6, $6
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
  updated_at = excluded.updated_at
