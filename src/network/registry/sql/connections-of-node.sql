SELECT provider, connection, node, epoch, left_at, revision, version FROM provider_connections WHERE node = $1 AND left_at IS NULL
