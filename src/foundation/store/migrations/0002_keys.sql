-- Accounts that were named or created explicitly. Balances are in `accounts`, under `escrow:<account>`.
CREATE TABLE consumers (
  account TEXT PRIMARY KEY,
  label TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX consumers_created ON consumers (created_at, account);

-- API keys, stored by the SHA-256 of their text. The text itself is not stored.
CREATE TABLE api_keys (
  hash TEXT PRIMARY KEY,
  account TEXT NOT NULL,
  label TEXT NOT NULL,
  development BIGINT NOT NULL,
  disabled BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT,
  -- Micro-USD per reset period; NULL for no limit.
  spend_limit BIGINT,
  limit_reset TEXT,
  -- JSON array of service names; NULL for all.
  allowed_services TEXT,
  CONSTRAINT api_keys_development CHECK (development IN (0, 1)),
  CONSTRAINT api_keys_disabled CHECK (disabled IN (0, 1)),
  CONSTRAINT api_keys_spend_limit CHECK (spend_limit >= 0),
  CONSTRAINT api_keys_limit_reset CHECK (limit_reset IN ('daily', 'weekly', 'monthly'))
);
CREATE INDEX api_keys_account ON api_keys (account, created_at, hash);

-- For the all-time credits of an account, which are the sum of its transfers.
CREATE INDEX transfers_to ON transfers (to_account);
CREATE INDEX transfers_from ON transfers (from_account);
