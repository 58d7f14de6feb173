-- Webhooks that clients registered for a task. The receiver's data is encrypted (`sealed`), because the address may be
-- as secret as the token.
CREATE TABLE webhooks (
  id TEXT PRIMARY KEY,
  account TEXT NOT NULL,
  -- The running call under which it was registered; empty if the account registered it directly.
  run TEXT NOT NULL,
  primitive TEXT NOT NULL,
  service TEXT NOT NULL,
  task_id TEXT NOT NULL,
  -- The client's name for the webhook.
  name TEXT NOT NULL,
  -- The form of notifications that the receiver expects, in the protocol's terms.
  form TEXT NOT NULL,
  -- Scheme, host and port. They are used to limit the deliveries to one receiver, so that it cannot block the others.
  receiver TEXT NOT NULL,
  sealed TEXT NOT NULL,
  -- Counts the deliveries that were queued. A gateway that found the queue empty can check whether it still is.
  signal BIGINT NOT NULL DEFAULT 0,
  -- Attempts of the next delivery in the queue.
  attempts BIGINT NOT NULL DEFAULT 0,
  -- When a gateway must look at the queue; NULL while the queue is empty. A gateway that claims the webhook moves this
  -- time forward, so that another gateway takes over if it crashes.
  due_at BIGINT,
  -- The claim of the gateway that works on the queue.
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
  -- Digest of the event, so that no event is delivered twice.
  digest TEXT NOT NULL,
  account TEXT NOT NULL,
  content_type TEXT NOT NULL,
  -- NULL after the delivery has succeeded or was given up.
  body TEXT,
  bytes BIGINT NOT NULL,
  CONSTRAINT webhook_deliveries_key PRIMARY KEY (webhook, position),
  CONSTRAINT webhook_deliveries_digest UNIQUE (webhook, digest)
);
CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries (account, bytes) WHERE body IS NOT NULL;
