UPDATE provider_connections SET left_at = $3, version = (SELECT version FROM registry_clock)
WHERE provider = $1 AND connection = $2 AND left_at IS NULL
RETURNING provider, connection, node, epoch, left_at, revision, version
