-- name: listDeparted
-- Providers that left before $1, the longest ago first. `earned`: it was paid for a call, so records name it.
SELECT c.provider, c.left_at, COALESCE(c.network, '') AS network, COALESCE(r.bytes, 0) AS bytes,
  (SELECT COUNT(*) FROM tool_pins p WHERE p.provider = c.provider) AS pins,
  EXISTS (SELECT 1 FROM accounts a WHERE a.id = 'earnings:' || c.provider) AS earned
FROM provider_connections c LEFT JOIN provider_registrations r ON r.provider = c.provider
WHERE c.left_at < $1 AND (r.bytes > 0 OR NOT EXISTS (SELECT 1 FROM accounts a WHERE a.id = 'earnings:' || c.provider))
ORDER BY c.left_at LIMIT $2

-- name: findUncalled
-- A provider that has left and that no call was ever locked for: nobody looks for its names.
SELECT c.provider, c.left_at, '' AS network, 0 AS bytes, 0 AS pins, 0 AS earned
FROM provider_connections c WHERE c.provider = $1 AND c.left_at IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM prices p WHERE p.provider = c.provider)

-- name: deleteDepartedNames
DELETE FROM service_names WHERE provider = $1
  AND EXISTS (SELECT 1 FROM provider_connections WHERE provider = $1 AND left_at = $2)

-- name: deleteDepartedPins
DELETE FROM tool_pins WHERE provider = $1
  AND EXISTS (SELECT 1 FROM provider_connections WHERE provider = $1 AND left_at = $2)

-- name: emptyDeparted
UPDATE provider_registrations SET document = '[]', past_prices = '[]', name_key = NULL, bytes = 0 WHERE provider = $1
  AND EXISTS (SELECT 1 FROM provider_connections WHERE provider = $1 AND left_at = $2)

-- name: deleteDepartedRegistration
DELETE FROM provider_registrations WHERE provider = $1
  AND EXISTS (SELECT 1 FROM provider_connections WHERE provider = $1 AND left_at = $2)

-- name: deleteDeparted
DELETE FROM provider_connections WHERE provider = $1 AND left_at = $2
