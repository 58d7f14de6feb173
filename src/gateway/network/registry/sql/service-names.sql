-- name: deleteServiceNames
DELETE FROM service_names WHERE provider = $1
  AND EXISTS (SELECT 1 FROM provider_connections WHERE provider = $1 AND connection = $2)

-- name: putServiceNames
-- $2: JSON array of [name, folded, part]. Names of providers that left before $4 are free, and so are those of banned
-- ones.
INSERT INTO service_names (provider, name, folded, part, owns)
SELECT $1, json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
  CASE WHEN EXISTS (
    SELECT 1 FROM service_names s JOIN provider_connections c ON c.provider = s.provider
    WHERE s.part = json_extract(value, '$[2]') AND s.part <> '' AND s.owns = 1 AND s.provider <> $1
      AND (c.left_at IS NULL OR c.left_at > $4)
      AND NOT EXISTS (SELECT 1 FROM provider_bans b WHERE b.provider = s.provider)
  ) THEN 0 ELSE 1 END
FROM json_each($2)
WHERE EXISTS (SELECT 1 FROM provider_connections WHERE provider = $1 AND connection = $3)

-- name: pgPutServiceNames
-- $2: JSON array of [name, folded, part]. Names of providers that left before $4 are free, and so are those of banned
-- ones.
INSERT INTO service_names (provider, name, folded, part, owns)
SELECT $1, each.value->>0, each.value->>1, each.value->>2,
  CASE WHEN EXISTS (
    SELECT 1 FROM service_names s JOIN provider_connections c ON c.provider = s.provider
    WHERE s.part = each.value->>2 AND s.part <> '' AND s.owns = 1 AND s.provider <> $1
      AND (c.left_at IS NULL OR c.left_at > $4)
      AND NOT EXISTS (SELECT 1 FROM provider_bans b WHERE b.provider = s.provider)
  ) THEN 0 ELSE 1 END
FROM json_array_elements(CAST($2 AS json)) AS each(value)
WHERE EXISTS (SELECT 1 FROM provider_connections WHERE provider = $1 AND connection = $3)

-- name: findTakenNames
-- $1: JSON array of [name, folded, part]. Names that look like another provider's, and names with another provider's
-- first part, unless another provider offers the same name. Names of providers that left before $3 are free, and so
-- are those of banned ones.
WITH
  wanted AS (
    SELECT json_extract(value, '$[0]') AS name, json_extract(value, '$[1]') AS folded,
      json_extract(value, '$[2]') AS part
    FROM json_each($1)
  ),
  taken AS (
    SELECT s.name, s.folded, s.part, s.owns FROM service_names s JOIN provider_connections c ON c.provider = s.provider
    WHERE (s.provider, s.name) IN (
        SELECT provider, name FROM service_names WHERE folded IN (SELECT folded FROM wanted)
        UNION SELECT provider, name FROM service_names WHERE part IN (SELECT part FROM wanted WHERE part <> '')
      )
      AND s.provider <> $2 AND (c.left_at IS NULL OR c.left_at > $3)
      AND NOT EXISTS (SELECT 1 FROM provider_bans b WHERE b.provider = s.provider)
  )
SELECT 1 AS alike, w.name AS wanted, MIN(t.name) AS taken
FROM wanted w JOIN taken t ON t.folded = w.folded AND t.name <> w.name GROUP BY w.name
UNION ALL
SELECT 0, w.name, MIN(t.name) FROM wanted w JOIN taken t ON t.part = w.part AND t.owns = 1
WHERE w.part <> '' AND NOT EXISTS (SELECT 1 FROM taken same WHERE same.folded = w.folded) GROUP BY w.name
ORDER BY 1 DESC, 2 LIMIT 100

-- name: pgFindTakenNames
-- $1: JSON array of [name, folded, part]. Names that look like another provider's, and names with another provider's
-- first part, unless another provider offers the same name. Names of providers that left before $3 are free, and so
-- are those of banned ones.
WITH
  wanted AS (
    SELECT each.value->>0 AS name, each.value->>1 AS folded, each.value->>2 AS part
    FROM json_array_elements(CAST($1 AS json)) AS each(value)
  ),
  taken AS (
    SELECT s.name, s.folded, s.part, s.owns FROM service_names s JOIN provider_connections c ON c.provider = s.provider
    WHERE (s.provider, s.name) IN (
        SELECT provider, name FROM service_names WHERE folded IN (SELECT folded FROM wanted)
        UNION SELECT provider, name FROM service_names WHERE part IN (SELECT part FROM wanted WHERE part <> '')
      )
      AND s.provider <> $2 AND (c.left_at IS NULL OR c.left_at > $3)
      AND NOT EXISTS (SELECT 1 FROM provider_bans b WHERE b.provider = s.provider)
  )
SELECT 1 AS alike, w.name AS wanted, MIN(t.name) AS taken
FROM wanted w JOIN taken t ON t.folded = w.folded AND t.name <> w.name GROUP BY w.name
UNION ALL
SELECT 0, w.name, MIN(t.name) FROM wanted w JOIN taken t ON t.part = w.part AND t.owns = 1
WHERE w.part <> '' AND NOT EXISTS (SELECT 1 FROM taken same WHERE same.folded = w.folded) GROUP BY w.name
ORDER BY 1 DESC, 2 LIMIT 100
