-- The connection was taken as gone with its gateway and is not: unless a newer one came meanwhile, it counts again.
UPDATE provider_connections SET left_at = NULL, version = (SELECT version FROM registry_clock)
WHERE provider = $1 AND connection = $2 AND left_at IS NOT NULL
RETURNING provider, connection, node, epoch, left_at, revision, version
