-- The connection was marked as ended together with its gateway, but is still open. It becomes valid again unless a
-- newer one came meanwhile.
UPDATE provider_connections SET left_at = NULL, version = (SELECT version FROM registry_clock)
WHERE provider = $1 AND connection = $2 AND left_at IS NOT NULL
RETURNING provider, connection, node, epoch, left_at, revision, version
