-- Every change of what follows takes the next version from here. The row stays locked until the change commits, so versions are in the
-- order of commits: whoever has seen one has seen all below it.
CREATE TABLE registry_clock (
  id BIGINT PRIMARY KEY,
  version BIGINT NOT NULL,
  CONSTRAINT registry_clock_one CHECK (id = 1)
);
INSERT INTO registry_clock (id, version) VALUES (1, 0);

-- The gateways that run. One that lives raises its beat; the others take it as gone when they have seen the same beat for too long.
CREATE TABLE nodes (
  id TEXT PRIMARY KEY,
  -- Where other gateways reach it; NULL for one that stands alone.
  url TEXT,
  beat BIGINT NOT NULL,
  started_at BIGINT NOT NULL
);

-- Where each provider is connected, or was last. Rows are never deleted: the epoch tells newer connections from older ones for ever.
CREATE TABLE provider_connections (
  provider TEXT PRIMARY KEY,
  connection TEXT NOT NULL,
  node TEXT NOT NULL,
  epoch BIGINT NOT NULL,
  connected_at BIGINT NOT NULL,
  -- NULL while connected.
  left_at BIGINT,
  -- Of provider_registrations; 0 before the first.
  revision BIGINT NOT NULL,
  version BIGINT NOT NULL
);
CREATE INDEX provider_connections_version ON provider_connections (version);
CREATE INDEX provider_connections_node ON provider_connections (node) WHERE left_at IS NULL;

-- What each provider offers, as it registered it last.
CREATE TABLE provider_registrations (
  provider TEXT PRIMARY KEY,
  account TEXT NOT NULL,
  -- NULL for a provider that has never offered anything.
  name TEXT,
  -- The name in lower case without spaces, dots, hyphens and underscores: it belongs to one provider.
  name_key TEXT,
  -- JSON array of services, each with the time of its first registration.
  document TEXT NOT NULL,
  revision BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  CONSTRAINT provider_registrations_name UNIQUE (name_key)
);
