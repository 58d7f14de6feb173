SELECT provider, connection, node, epoch, left_at, revision, version FROM provider_connections WHERE version > $1 ORDER BY version
