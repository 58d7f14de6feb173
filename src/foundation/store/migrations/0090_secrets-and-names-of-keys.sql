-- The secrets of keys that were given another one. A key without a row has the secret whose SHA-256 is its hash.
CREATE TABLE key_secrets (
  -- SHA-256 of the secret in hex. The first secret of a key keeps its row, so that it stays refused.
  secret TEXT PRIMARY KEY,
  key_hash TEXT NOT NULL,
  -- Epoch milliseconds from which it is refused. NULL: it is the present one.
  ends_at BIGINT
);
CREATE INDEX key_secrets_key ON key_secrets (key_hash);

-- The names of keys, which figures show also after a key was deleted.
CREATE TABLE key_names (
  hash TEXT PRIMARY KEY,
  account TEXT NOT NULL,
  label TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX key_names_account ON key_names (account, created_at);
INSERT INTO key_names (hash, account, label, created_at) SELECT hash, account, label, created_at FROM api_keys;
