-- Receivers that clients named, to be told of what happens to a task. What a client says of its receiver is sealed: its address may be as secret as its token.
CREATE TABLE webhooks (
  id TEXT PRIMARY KEY,
  account TEXT NOT NULL,
  -- The running call under which it was set; empty for one that the account set itself.
  run TEXT NOT NULL,
  primitive TEXT NOT NULL,
  service TEXT NOT NULL,
  task_id TEXT NOT NULL,
  -- The client's name of it.
  name TEXT NOT NULL,
  -- The protocol's word for how its receiver is spoken to.
  form TEXT NOT NULL,
  -- Scheme, host and port, so that one receiver cannot take the places of all.
  receiver TEXT NOT NULL,
  sealed TEXT NOT NULL,
  -- Counts what was queued for it. Whoever found its queue empty knows by it whether that still holds.
  signal BIGINT NOT NULL DEFAULT 0,
  -- Of what is next in its queue.
  attempts BIGINT NOT NULL DEFAULT 0,
  -- When somebody is to look at its queue; NULL while that is empty. A gateway that has taken it puts this off, so that another one goes on should it die.
  due_at BIGINT,
  -- Who has taken it.
  claim TEXT,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  CONSTRAINT webhooks_name UNIQUE (primitive, service, task_id, account, run, name)
);
CREATE INDEX webhooks_account ON webhooks (account);
CREATE INDEX webhooks_due ON webhooks (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX webhooks_expires ON webhooks (expires_at);

CREATE TABLE webhook_deliveries (
  webhook TEXT NOT NULL CONSTRAINT webhook_deliveries_webhook REFERENCES webhooks (id) ON DELETE CASCADE,
  position BIGINT NOT NULL,
  -- Of what happened: nothing is told twice.
  digest TEXT NOT NULL,
  account TEXT NOT NULL,
  content_type TEXT NOT NULL,
  -- NULL once it was delivered or given up.
  body TEXT,
  bytes BIGINT NOT NULL,
  CONSTRAINT webhook_deliveries_key PRIMARY KEY (webhook, position),
  CONSTRAINT webhook_deliveries_digest UNIQUE (webhook, digest)
);
CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries (account, bytes) WHERE body IS NOT NULL;
