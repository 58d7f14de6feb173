-- Replies are stored as bytes, and count against a quota of their account. The bodies of replies that were stored as
-- text are dropped. Their rows only show that a reply was given.
CREATE TABLE idempotency_next (
  account TEXT NOT NULL,
  key TEXT NOT NULL,
  body_hash TEXT NOT NULL,
  call_id TEXT NOT NULL,
  state TEXT NOT NULL,
  status BIGINT,
  -- JSON object.
  headers TEXT,
  -- If the call is done, NULL means that the reply is not stored, or not any more.
  body BYTEA,
  -- 0: the call cost nothing, so a repeat would cost nothing either.
  charged BIGINT NOT NULL,
  -- What the row counts against the account's quota.
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
