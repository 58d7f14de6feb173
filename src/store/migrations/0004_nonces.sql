-- Nonces of sign-in messages that have done their one sensitive act. Issuing one writes nothing: it proves itself.
CREATE TABLE used_nonces (
  nonce TEXT PRIMARY KEY,
  -- Long after the nonce itself is too old to be used.
  expires_at BIGINT NOT NULL
);
CREATE INDEX used_nonces_expires ON used_nonces (expires_at);
