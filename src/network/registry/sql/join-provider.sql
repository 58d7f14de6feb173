INSERT INTO provider_connections (provider, connection, node, epoch, connected_at, left_at, revision, version)
VALUES ($1, $2, $3, 1, $4, NULL, 0, (SELECT version FROM registry_clock))
ON CONFLICT (provider) DO UPDATE SET
  connection = excluded.connection,
  node = excluded.node,
  epoch = provider_connections.epoch + 1,
  connected_at = excluded.connected_at,
  left_at = NULL,
  version = excluded.version
RETURNING provider, connection, node, epoch, left_at, revision, version
