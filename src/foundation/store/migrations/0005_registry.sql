-- Every change of the tables below takes its version from this counter. The row stays locked until the change commits,
-- so versions are in the order of commits. A reader that has seen a version has seen all lower versions.
CREATE TABLE registry_clock (
  id BIGINT PRIMARY KEY,
  version BIGINT NOT NULL,
  CONSTRAINT registry_clock_one CHECK (id = 1)
);
INSERT INTO registry_clock (id, version) VALUES (1, 0);

-- The running gateways. A living gateway increments its beat. The others treat it as gone if its beat does not change
-- for too long.
CREATE TABLE nodes (
  id TEXT PRIMARY KEY,
  -- The URL at which other gateways reach this gateway; NULL for a single gateway.
  url TEXT,
  beat BIGINT NOT NULL,
  started_at BIGINT NOT NULL
);

-- The gateway to which each provider is connected, or was connected last. Rows are never deleted, because `epoch` must
-- always distinguish newer connections from older ones.
CREATE TABLE provider_connections (
  provider TEXT PRIMARY KEY,
  connection TEXT NOT NULL,
  node TEXT NOT NULL,
  epoch BIGINT NOT NULL,
  connected_at BIGINT NOT NULL,
  -- NULL while connected.
  left_at BIGINT,
  -- The revision of provider_registrations; 0 before the first registration.
  revision BIGINT NOT NULL,
  version BIGINT NOT NULL
);
CREATE INDEX provider_connections_version ON provider_connections (version);
CREATE INDEX provider_connections_node ON provider_connections (node) WHERE left_at IS NULL;

-- The last registration of each provider.
CREATE TABLE provider_registrations (
  provider TEXT PRIMARY KEY,
  account TEXT NOT NULL,
  -- NULL for a provider that has never offered anything.
  name TEXT,
  -- The name in lower case without spaces, dots, hyphens and underscores. It is unique to one provider.
  name_key TEXT,
  -- JSON array of services, each with the time of its first registration.
  document TEXT NOT NULL,
  revision BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  CONSTRAINT provider_registrations_name UNIQUE (name_key)
);
