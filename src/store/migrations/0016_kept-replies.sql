-- Replies are kept as bytes, and counted for the account that they are kept for. Of those that were kept as text until now it is only known that they were given.
CREATE TABLE idempotency_next (
  account TEXT NOT NULL,
  key TEXT NOT NULL,
  body_hash TEXT NOT NULL,
  call_id TEXT NOT NULL,
  state TEXT NOT NULL,
  status BIGINT,
  -- JSON object.
  headers TEXT,
  -- NULL of a call that is done: its reply is not kept, or not any more.
  body BYTEA,
  -- 0: a repeat would cost nothing, as the call did.
  charged BIGINT NOT NULL,
  -- What the row counts of the account's quota.
  bytes BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  PRIMARY KEY (account, key),
  CONSTRAINT idempotency_state CHECK (state IN ('running', 'done')),
  CONSTRAINT idempotency_done CHECK (state = 'running' OR (status IS NOT NULL AND headers IS NOT NULL))
);
INSERT INTO idempotency_next (account, key, body_hash, call_id, state, status, headers, body, charged, bytes, created_at, expires_at)
SELECT account, key, body_hash, call_id, state, status, headers, NULL, 1, 0, created_at, expires_at FROM idempotency;
DROP TABLE idempotency;
ALTER TABLE idempotency_next RENAME TO idempotency;
CREATE INDEX idempotency_expires ON idempotency (expires_at);
