-- Sessions of protocols that have them, so that any gateway of this database can go on with one.
CREATE TABLE sessions (
  id TEXT PRIMARY KEY,
  account TEXT NOT NULL,
  -- Which protocol's, such as mcp.
  kind TEXT NOT NULL,
  -- The protocol's own.
  state TEXT NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX sessions_account ON sessions (account, kind, expires_at);
CREATE INDEX sessions_expires ON sessions (kind, expires_at);
