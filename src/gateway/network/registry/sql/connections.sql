-- name: joinProvider
INSERT INTO provider_connections (provider, connection, node, epoch, connected_at, left_at, revision, version, network)
VALUES ($1, $2, $3, 1, $4, NULL, 0, (SELECT version FROM registry_clock), $5)
ON CONFLICT (provider) DO UPDATE SET
  connection = excluded.connection,
  node = excluded.node,
  epoch = provider_connections.epoch + 1,
  connected_at = excluded.connected_at,
  left_at = NULL,
  version = excluded.version,
  network = excluded.network
RETURNING provider, connection, node, epoch, left_at, revision, version

-- name: leaveProvider
UPDATE provider_connections SET left_at = $3, version = (SELECT version FROM registry_clock)
WHERE provider = $1 AND connection = $2 AND left_at IS NULL
RETURNING provider, connection, node, epoch, left_at, revision, version

-- name: leaveOrphans
UPDATE provider_connections SET left_at = $1, version = (SELECT version FROM registry_clock)
WHERE left_at IS NULL AND NOT EXISTS (SELECT 1 FROM nodes WHERE nodes.id = provider_connections.node)
RETURNING provider, connection, node, epoch, left_at, revision, version

-- name: reviveConnection
-- The connection was marked as ended together with its gateway, but is still open. It becomes valid again unless a
-- newer one came meanwhile.
UPDATE provider_connections SET left_at = NULL, version = (SELECT version FROM registry_clock)
WHERE provider = $1 AND connection = $2 AND left_at IS NOT NULL
RETURNING provider, connection, node, epoch, left_at, revision, version

-- name: changedConnections
SELECT provider, connection, node, epoch, left_at, revision, version FROM provider_connections WHERE version > $1 ORDER BY version

-- name: recentConnections
SELECT provider, connection, node, epoch, left_at, revision, version FROM provider_connections WHERE left_at IS NULL OR left_at > $1 ORDER BY version

-- name: connectionsOfNode
SELECT provider, connection, node, epoch, left_at, revision, version FROM provider_connections WHERE node = $1 AND left_at IS NULL
