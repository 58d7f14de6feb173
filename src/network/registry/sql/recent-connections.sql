SELECT provider, connection, node, epoch, left_at, revision, version FROM provider_connections WHERE left_at IS NULL OR left_at > $1 ORDER BY version
