-- Who uses a context of a service. Providers know one client, the gateway: what they remember of a context is one account's, or one run's of it.
CREATE TABLE contexts (
  primitive TEXT NOT NULL,
  service TEXT NOT NULL,
  context_id TEXT NOT NULL,
  account TEXT NOT NULL,
  -- Id of the call under which it was first used; NULL for the account itself.
  run TEXT,
  used_at BIGINT NOT NULL,
  PRIMARY KEY (primitive, service, context_id)
);
CREATE INDEX contexts_used ON contexts (used_at);
