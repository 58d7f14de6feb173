-- Nonces of sign-in messages that were used for a sensitive action, which a nonce allows only once. Issuing a nonce
-- writes nothing, because the nonce can be verified without a row.
CREATE TABLE used_nonces (
  nonce TEXT PRIMARY KEY,
  -- Long after the nonce itself has expired.
  expires_at BIGINT NOT NULL
);
CREATE INDEX used_nonces_expires ON used_nonces (expires_at);
