UPDATE provider_connections SET
  revision = (SELECT revision FROM provider_registrations WHERE provider = $1),
  version = (SELECT version FROM registry_clock)
WHERE provider = $1 AND connection = $2 AND revision < (SELECT revision FROM provider_registrations WHERE provider = $1)
RETURNING provider, connection, node, epoch, left_at, revision, version
