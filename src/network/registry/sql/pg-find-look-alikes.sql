-- $1: JSON array of [name, folded]. Names of providers that left before $3 are free, and so are those of banned ones.
SELECT wanted.value->>0 AS wanted, s.name AS taken
FROM json_array_elements(CAST($1 AS json)) AS wanted(value)
JOIN service_names s ON s.folded = wanted.value->>1 AND s.name <> wanted.value->>0
JOIN provider_connections c ON c.provider = s.provider
WHERE s.provider <> $2 AND (c.left_at IS NULL OR c.left_at > $3)
  AND NOT EXISTS (SELECT 1 FROM provider_bans b WHERE b.provider = s.provider)
ORDER BY 1, 2 LIMIT 100
