-- Sessions of browsers. The cookie has the secret, and the row has only its digest.
CREATE TABLE web_sessions (
  id TEXT PRIMARY KEY,
  account TEXT NOT NULL,
  signed_in_by TEXT NOT NULL,
  -- SHA-256 of the API key or admin key that began the session. The session ends with its key.
  key_hash TEXT,
  -- CAIP-10, with the network of the signature.
  wallet TEXT,
  -- User-Agent of the browser, for the list of sessions.
  client TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  -- Written at most once a minute.
  seen_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  CONSTRAINT web_sessions_signed_in_by CHECK (signed_in_by IN ('wallet', 'api_key', 'development', 'admin_key'))
);
CREATE INDEX web_sessions_account ON web_sessions (account, created_at);
CREATE INDEX web_sessions_expire ON web_sessions (expires_at);
CREATE INDEX web_sessions_seen ON web_sessions (seen_at);
