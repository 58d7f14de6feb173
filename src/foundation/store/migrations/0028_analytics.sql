-- Sums of calls per UTC day (days since 1970-01-01), computed from the journal. `service` is the service that served
-- the call, else the one that was called.

-- One row. A gateway that adds to the sums increments the version, so two gateways cannot add the same calls.
CREATE TABLE analytics_state (
  id BIGINT PRIMARY KEY,
  version BIGINT NOT NULL,
  -- When the newest call in the sums was resolved.
  as_of BIGINT NOT NULL,
  -- When a gateway last added to the sums, and when one last looked for new accounts.
  rolled_at BIGINT NOT NULL,
  accounts_at BIGINT NOT NULL,
  -- The first day in usage_days. Older days were removed.
  usage_since BIGINT NOT NULL,
  CONSTRAINT analytics_state_one CHECK (id = 1)
);
INSERT INTO analytics_state (id, version, as_of, rolled_at, accounts_at, usage_since) VALUES (1, 0, 0, 0, 0, 0);

-- The last group of each journal chain that is in the sums. `position` is the end of that group in the log of the
-- embedded ledger.
CREATE TABLE analytics_cursors (
  chain TEXT PRIMARY KEY,
  n BIGINT NOT NULL,
  position BIGINT NOT NULL
);

-- An account's own usage. `key` is the hash of the API key. `key` and `provider` are empty if there was none.
CREATE TABLE usage_days (
  day BIGINT NOT NULL,
  account TEXT NOT NULL,
  key TEXT NOT NULL,
  primitive TEXT NOT NULL,
  service TEXT NOT NULL,
  provider TEXT NOT NULL,
  requests BIGINT NOT NULL,
  failed BIGINT NOT NULL,
  charged BIGINT NOT NULL,
  fee BIGINT NOT NULL,
  prompt BIGINT NOT NULL,
  completion BIGINT NOT NULL,
  reasoning BIGINT NOT NULL,
  cached BIGINT NOT NULL,
  images BIGINT NOT NULL,
  seconds BIGINT NOT NULL,
  PRIMARY KEY (account, day, key, primitive, service, provider)
);
CREATE INDEX usage_days_day ON usage_days (day);

-- The public figures of a service. `development` is 1 for calls of the development account.
CREATE TABLE service_days (
  day BIGINT NOT NULL,
  development BIGINT NOT NULL,
  primitive TEXT NOT NULL,
  service TEXT NOT NULL,
  provider TEXT NOT NULL,
  requests BIGINT NOT NULL,
  failed BIGINT NOT NULL,
  charged BIGINT NOT NULL,
  prompt BIGINT NOT NULL,
  completion BIGINT NOT NULL,
  reasoning BIGINT NOT NULL,
  cached BIGINT NOT NULL,
  images BIGINT NOT NULL,
  seconds BIGINT NOT NULL,
  -- Completion tokens of calls whose duration is known, and that duration in milliseconds.
  timed_tokens BIGINT NOT NULL,
  timed_ms BIGINT NOT NULL,
  PRIMARY KEY (day, development, primitive, service, provider)
);
CREATE INDEX service_days_service ON service_days (service, primitive, day);

-- Histogram of times. `measure` is first_byte or duration. There are four buckets per doubling of the milliseconds.
-- `development` is as in service_days.
CREATE TABLE service_times (
  day BIGINT NOT NULL,
  development BIGINT NOT NULL,
  primitive TEXT NOT NULL,
  service TEXT NOT NULL,
  provider TEXT NOT NULL,
  measure TEXT NOT NULL,
  bucket BIGINT NOT NULL,
  calls BIGINT NOT NULL,
  PRIMARY KEY (day, service, primitive, development, provider, measure, bucket)
);

-- The sums of service_days by primitive, so that several years can be read quickly.
CREATE TABLE public_days (
  day BIGINT NOT NULL,
  development BIGINT NOT NULL,
  primitive TEXT NOT NULL,
  requests BIGINT NOT NULL,
  failed BIGINT NOT NULL,
  charged BIGINT NOT NULL,
  prompt BIGINT NOT NULL,
  completion BIGINT NOT NULL,
  reasoning BIGINT NOT NULL,
  cached BIGINT NOT NULL,
  PRIMARY KEY (day, development, primitive)
);

-- Users that were active on a day, as 8 bytes of the account's hash, because counting needs no names. Rows are kept for
-- ever.
CREATE TABLE user_days (
  day BIGINT NOT NULL,
  account_hash BIGINT NOT NULL,
  PRIMARY KEY (day, account_hash)
);

-- Known accounts, by the same hash. `wallet` is 1 if the account is a wallet. `since` is the first day.
CREATE TABLE known_users (
  account_hash BIGINT PRIMARY KEY,
  wallet BIGINT NOT NULL,
  since BIGINT NOT NULL
);
CREATE INDEX known_users_since ON known_users (since, wallet);

-- Attempts at an offer per day. offer_figures has them per minute.
CREATE TABLE offer_days (
  day BIGINT NOT NULL,
  -- Id of the offer: primitive, provider and name.
  offer TEXT NOT NULL,
  successes BIGINT NOT NULL,
  failures BIGINT NOT NULL,
  PRIMARY KEY (offer, day)
);
CREATE INDEX offer_days_day ON offer_days (day);

CREATE INDEX prices_service ON prices (service, provider, created_at);
