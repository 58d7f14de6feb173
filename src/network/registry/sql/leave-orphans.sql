UPDATE provider_connections SET left_at = $1, version = (SELECT version FROM registry_clock)
WHERE left_at IS NULL AND NOT EXISTS (SELECT 1 FROM nodes WHERE nodes.id = provider_connections.node)
RETURNING provider, connection, node, epoch, left_at, revision, version
