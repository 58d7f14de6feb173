-- Providers that the operator has banned. `provider` is the public key.
CREATE TABLE provider_bans (
  provider TEXT PRIMARY KEY,
  -- The operator's reason, which the provider is told.
  reason TEXT NOT NULL,
  at BIGINT NOT NULL
);

-- The names of the services of each provider's last registration. `folded` is equal for names that look alike. A
-- provider that registered before this table existed has no rows until its next registration.
CREATE TABLE service_names (
  provider TEXT NOT NULL,
  name TEXT NOT NULL,
  folded TEXT NOT NULL,
  PRIMARY KEY (provider, name)
);
CREATE INDEX service_names_folded ON service_names (folded);
