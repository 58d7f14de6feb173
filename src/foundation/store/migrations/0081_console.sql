-- Sums for the operator's console, of hours for the last days and of days for longer. `span` is 0 for hours and 1 for
-- days; `at` is the hour or the day of the resolution, counted from 1970-01-01 UTC.
CREATE TABLE offer_sums (
  span BIGINT NOT NULL,
  at BIGINT NOT NULL,
  primitive TEXT NOT NULL,
  service TEXT NOT NULL,
  provider TEXT NOT NULL,
  -- Why its calls failed: the code of the error. Empty for calls that were served.
  cause TEXT NOT NULL,
  requests BIGINT NOT NULL,
  failed BIGINT NOT NULL,
  charged BIGINT NOT NULL,
  fee BIGINT NOT NULL,
  -- The cost of those calls whose cost is known, and what the provider's share of these calls was.
  cost BIGINT NOT NULL,
  cost_base BIGINT NOT NULL,
  tokens BIGINT NOT NULL,
  PRIMARY KEY (span, at, primitive, service, provider, cause)
);
CREATE TABLE account_sums (
  span BIGINT NOT NULL,
  at BIGINT NOT NULL,
  account TEXT NOT NULL,
  requests BIGINT NOT NULL,
  failed BIGINT NOT NULL,
  charged BIGINT NOT NULL,
  fee BIGINT NOT NULL,
  PRIMARY KEY (span, at, account)
);
-- The sums are made of the whole journal again, so that these tables have the calls of before.
DELETE FROM analytics_cursors;

-- What the operator's people write about an account. Its owner does not see it.
CREATE TABLE account_notes (
  id TEXT PRIMARY KEY,
  account TEXT NOT NULL,
  at BIGINT NOT NULL,
  administrator TEXT NOT NULL,
  text TEXT NOT NULL
);
CREATE INDEX account_notes_account ON account_notes (account, at);

-- The state of each process of a gateway, as it reported it last. `report` is JSON.
CREATE TABLE gateway_reports (
  id TEXT PRIMARY KEY,
  at BIGINT NOT NULL,
  report TEXT NOT NULL
);
