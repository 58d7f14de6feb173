-- Accounts that cost nothing and never had money, see unfunded-accounts.ts. `used_at`: 0 for those of before this table.
-- `look_at`: when it is looked whether the account is to be forgotten.
CREATE TABLE unfunded_accounts (
  account TEXT PRIMARY KEY,
  used_at BIGINT NOT NULL,
  look_at BIGINT NOT NULL
);
CREATE INDEX unfunded_accounts_look ON unfunded_accounts (look_at);
INSERT INTO unfunded_accounts (account, used_at, look_at)
SELECT account, 0, 0 FROM (
  SELECT account FROM api_keys UNION SELECT account FROM key_names UNION SELECT account FROM consumers UNION SELECT account FROM account_limits
  UNION SELECT account FROM account_webhooks UNION SELECT account FROM provider_keys UNION SELECT account FROM wallets
) AS known
WHERE account LIKE 'eip155:%' OR account LIKE 'solana:%' OR account LIKE 'tollgate:local:org-%';

CREATE INDEX api_keys_expired ON api_keys (expires_at) WHERE expires_at IS NOT NULL;

-- The secrets of a key go with it.
CREATE TABLE secrets_of_keys (
  -- SHA-256 of the secret in hex. The first secret of a key keeps its row, so that it stays refused.
  secret TEXT PRIMARY KEY,
  key_hash TEXT NOT NULL REFERENCES api_keys (hash) ON DELETE CASCADE,
  -- Epoch milliseconds from which it is refused. NULL: it is the present one.
  ends_at BIGINT
);
INSERT INTO secrets_of_keys (secret, key_hash, ends_at)
SELECT secret, key_hash, ends_at FROM key_secrets WHERE key_hash IN (SELECT hash FROM api_keys);
DROP TABLE key_secrets;
ALTER TABLE secrets_of_keys RENAME TO key_secrets;
CREATE INDEX key_secrets_key ON key_secrets (key_hash);
