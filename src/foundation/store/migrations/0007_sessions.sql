-- Sessions of protocols, stored so that every gateway of this database can continue them.
CREATE TABLE sessions (
  id TEXT PRIMARY KEY,
  account TEXT NOT NULL,
  -- The protocol, such as mcp.
  kind TEXT NOT NULL,
  -- In the protocol's own format.
  state TEXT NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX sessions_account ON sessions (account, kind, expires_at);
CREATE INDEX sessions_expires ON sessions (kind, expires_at);
