-- $2: JSON array of [name, folded].
INSERT INTO service_names (provider, name, folded)
SELECT $1, each.value->>0, each.value->>1 FROM json_array_elements(CAST($2 AS json)) AS each(value)
WHERE EXISTS (SELECT 1 FROM provider_connections WHERE provider = $1 AND connection = $3)
