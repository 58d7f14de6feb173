-- The state of the gateway's own authorization server: registered clients, sign-ins under way, codes, tokens and grants.
-- `id` is the SHA-256 of the code or token, so that nobody can use what a copy of this table shows.
CREATE TABLE authorization_state (
  kind TEXT NOT NULL,
  id TEXT NOT NULL,
  -- JSON, in the form of the library.
  payload TEXT NOT NULL,
  -- Hash of the API key that the grant is. NULL where no grant exists yet.
  grant_key TEXT,
  -- The network of a client that registered itself and was not allowed anything yet.
  network TEXT,
  consumed_at BIGINT,
  expires_at BIGINT NOT NULL,
  PRIMARY KEY (kind, id)
);
CREATE INDEX authorization_state_by_grant ON authorization_state (grant_key) WHERE grant_key IS NOT NULL;
CREATE INDEX authorization_state_by_end ON authorization_state (expires_at);
CREATE INDEX authorization_state_by_network ON authorization_state (network) WHERE network IS NOT NULL;
-- The origin of the program whose grant this key is. NULL for a key that somebody has.
ALTER TABLE api_keys ADD COLUMN client TEXT;
