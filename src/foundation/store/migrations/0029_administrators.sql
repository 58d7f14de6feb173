-- Keys of administrators besides TOLLGATE_ADMIN_KEY, stored by the SHA-256 of their text. The text itself is not
-- stored.
CREATE TABLE admin_keys (
  hash TEXT PRIMARY KEY,
  -- The first 16 digits of the hash, as a public id of the key.
  id TEXT NOT NULL UNIQUE,
  label TEXT NOT NULL,
  -- JSON array of roles.
  roles TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT,
  -- A revoked key stays in the table, because the log refers to it.
  revoked_at BIGINT
);
CREATE INDEX admin_keys_created ON admin_keys (created_at, hash);

-- Changes that administrators made or tried to make. A row is written before the change and completed after it.
CREATE TABLE admin_log (
  -- Time and random digits, so ids sort by time.
  id TEXT PRIMARY KEY,
  at BIGINT NOT NULL,
  -- Id of the key; root for TOLLGATE_ADMIN_KEY, command for a command on the database.
  actor TEXT NOT NULL,
  address TEXT NOT NULL,
  method TEXT NOT NULL,
  path TEXT NOT NULL,
  -- The shortened body as JSON; NULL without a body.
  body TEXT,
  -- HTTP status of the answer; NULL while it is not known.
  status BIGINT
);
