-- Sessions of browsers. The cookie has the secret; the row has its digest.
CREATE TABLE web_sessions (
  id TEXT PRIMARY KEY,
  account TEXT NOT NULL,
  signed_in_by TEXT NOT NULL,
  -- SHA-256 of the API key or of the admin key that began it. A session ends with its key.
  key_hash TEXT,
  -- CAIP-10, with the network that was signed on.
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
