-- The owner of each context of a service. Providers see the gateway as their only client, so the gateway must bind a
-- context to one account, or to one run of an account.
CREATE TABLE contexts (
  primitive TEXT NOT NULL,
  service TEXT NOT NULL,
  context_id TEXT NOT NULL,
  account TEXT NOT NULL,
  -- Id of the call under which the context was first used; NULL if the account used it directly.
  run TEXT,
  used_at BIGINT NOT NULL,
  PRIMARY KEY (primitive, service, context_id)
);
CREATE INDEX contexts_used ON contexts (used_at);
