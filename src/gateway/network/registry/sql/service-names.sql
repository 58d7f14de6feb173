-- name: deleteServiceNames
DELETE FROM service_names WHERE provider = $1
  AND EXISTS (SELECT 1 FROM provider_connections WHERE provider = $1 AND connection = $2)

-- name: putServiceNames
-- $2: JSON array of [name, folded].
INSERT INTO service_names (provider, name, folded)
SELECT $1, json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each($2)
WHERE EXISTS (SELECT 1 FROM provider_connections WHERE provider = $1 AND connection = $3)

-- name: pgPutServiceNames
-- $2: JSON array of [name, folded].
INSERT INTO service_names (provider, name, folded)
SELECT $1, each.value->>0, each.value->>1 FROM json_array_elements(CAST($2 AS json)) AS each(value)
WHERE EXISTS (SELECT 1 FROM provider_connections WHERE provider = $1 AND connection = $3)

-- name: findLookAlikes
-- $1: JSON array of [name, folded]. Names of providers that left before $3 are free, and so are those of banned ones.
SELECT json_extract(wanted.value, '$[0]') AS wanted, s.name AS taken
FROM json_each($1) AS wanted
JOIN service_names s ON s.folded = json_extract(wanted.value, '$[1]') AND s.name <> json_extract(wanted.value, '$[0]')
JOIN provider_connections c ON c.provider = s.provider
WHERE s.provider <> $2 AND (c.left_at IS NULL OR c.left_at > $3)
  AND NOT EXISTS (SELECT 1 FROM provider_bans b WHERE b.provider = s.provider)
ORDER BY 1, 2 LIMIT 100

-- name: pgFindLookAlikes
-- $1: JSON array of [name, folded]. Names of providers that left before $3 are free, and so are those of banned ones.
SELECT wanted.value->>0 AS wanted, s.name AS taken
FROM json_array_elements(CAST($1 AS json)) AS wanted(value)
JOIN service_names s ON s.folded = wanted.value->>1 AND s.name <> wanted.value->>0
JOIN provider_connections c ON c.provider = s.provider
WHERE s.provider <> $2 AND (c.left_at IS NULL OR c.left_at > $3)
  AND NOT EXISTS (SELECT 1 FROM provider_bans b WHERE b.provider = s.provider)
ORDER BY 1, 2 LIMIT 100
