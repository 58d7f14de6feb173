-- $2: JSON array of [name, folded].
INSERT INTO service_names (provider, name, folded)
SELECT $1, json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each($2)
WHERE EXISTS (SELECT 1 FROM provider_connections WHERE provider = $1 AND connection = $3)
