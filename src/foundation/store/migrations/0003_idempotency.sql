-- Outcomes of calls with an idempotency key, for as long as the request may be repeated.
CREATE TABLE idempotency (
  account TEXT NOT NULL,
  key TEXT NOT NULL,
  body_hash TEXT NOT NULL,
  call_id TEXT NOT NULL,
  state TEXT NOT NULL,
  status BIGINT,
  -- JSON object.
  headers TEXT,
  -- Base64, because the binary types of the engines differ.
  body TEXT,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  PRIMARY KEY (account, key),
  CONSTRAINT idempotency_state CHECK (state IN ('running', 'done')),
  CONSTRAINT idempotency_done CHECK (state = 'running' OR (status IS NOT NULL AND headers IS NOT NULL AND body IS NOT NULL))
);
CREATE INDEX idempotency_expires ON idempotency (expires_at);
