-- Sums of calls by UTC day (days since 1970-01-01), made of the journal. `service` is the service that served, else the one that was called.

-- One row. Whoever adds to the sums moves the version on: two gateways cannot add the same calls.
CREATE TABLE analytics_state (
  id BIGINT PRIMARY KEY,
  version BIGINT NOT NULL,
  -- When the newest call in the sums was resolved.
  as_of BIGINT NOT NULL,
  -- When a gateway added to the sums last, and when one looked for new accounts last.
  rolled_at BIGINT NOT NULL,
  accounts_at BIGINT NOT NULL,
  -- The first day of usage_days: days before it were removed for their age.
  usage_since BIGINT NOT NULL,
  CONSTRAINT analytics_state_one CHECK (id = 1)
);
INSERT INTO analytics_state (id, version, as_of, rolled_at, accounts_at, usage_since) VALUES (1, 0, 0, 0, 0, 0);

-- Up to which group of each chain of the journal the sums go. position: where that group ends in the log of the embedded ledger.
CREATE TABLE analytics_cursors (
  chain TEXT PRIMARY KEY,
  n BIGINT NOT NULL,
  position BIGINT NOT NULL
);

-- What an account sees of itself. `key` is the hash of the key; it and `provider` are empty where there was none.
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

-- What everybody sees of a service. development: 1 for calls of the development account.
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
  -- Completion tokens of calls whose time is known, and that time in milliseconds.
  timed_tokens BIGINT NOT NULL,
  timed_ms BIGINT NOT NULL,
  PRIMARY KEY (day, development, primitive, service, provider)
);
CREATE INDEX service_days_service ON service_days (service, primitive, day);

-- How many calls took how long. measure: first_byte or duration. bucket: four for each doubling of milliseconds. development: as in service_days.
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

-- The sums of service_days by primitive, so that years are read at once.
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

-- Who was active on a day, as 8 bytes of the hash of the account: to count them takes no names. They are kept for ever.
CREATE TABLE user_days (
  day BIGINT NOT NULL,
  account_hash BIGINT NOT NULL,
  PRIMARY KEY (day, account_hash)
);

-- Accounts that are known, by the same hash. wallet: 1 where the account is a wallet. since: the first day.
CREATE TABLE known_users (
  account_hash BIGINT PRIMARY KEY,
  wallet BIGINT NOT NULL,
  since BIGINT NOT NULL
);
CREATE INDEX known_users_since ON known_users (since, wallet);

-- Attempts at an offer by day, as offer_figures counts them by the minute.
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
